"""The model card of a VerifyRM: README.md beside the weights."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cooper_rl.verifyrm.train.calibration import FEWEST_ROWS


def write_model_card(folder: Path, result: dict[str, Any]) -> None:
    """Write `README.md` from the result of `train_verifyrm`: data, metrics, input format and limits."""
    environment = Environment(
        loader=PackageLoader("cooper_rl.model_cards"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    card = environment.get_template("model_card.md.j2").render(name=folder.name, fewest_rows=FEWEST_ROWS, **result)
    (folder / "README.md").write_text(card, encoding="utf-8")
