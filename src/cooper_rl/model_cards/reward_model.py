"""The model card of a VerifyRM: README.md beside the weights."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def write_model_card(folder: Path, result: dict[str, Any], fewest_rows: int) -> None:
    """Write `README.md` from the result of `train_verifyrm`: data, metrics, input format and limits.

    `fewest_rows` is the number of held-out rows that calibration needs.
    """
    environment = Environment(
        loader=PackageLoader("cooper_rl.model_cards"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    card = environment.get_template("model_card.md.j2").render(name=folder.name, fewest_rows=fewest_rows, **result)
    (folder / "README.md").write_text(card, encoding="utf-8")
