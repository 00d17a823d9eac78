"""Model cards: the README.md beside the weights, with the input format, what the model is and how it was trained."""

import re
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from cooper_base.config.explanation import default_text
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.files.durable import write_text
from cooper_rl.engines.model_folder import ADAPTER_CONFIG, recorded

NAME = "README.md"
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_INHERITED = ("license", "license_name", "license_link", "language")
"""Fields of a base model's card that also hold for a model trained from it."""


def write_model_cards(config: Any, step: int, chat: bool, folder: Path) -> None:
    """Cards in `policy/` and, if it is a Hugging Face folder, `reward_model/`, from a run's settings, a `RunConfig`.

    A learner of the user's own may write another folder, of which a card would know nothing. `chat`: whether prompts
    went through the chat template.
    """
    facts = {"config": config, "step": step, "chat": chat, "cooper_version": version("cooper-rl")}
    _write(folder / "policy", "policy_card.md.j2", config.policy.model, facts, task="text-generation")
    saved = folder / "reward_model"
    is_model = any((saved / name).is_file() for name in ("config.json", ADAPTER_CONFIG))
    if config.reward_model is not None and config.learns and is_model:
        base = config.reward_model.model
        facts["yes_no"] = recorded(str(saved))
        task = "text-generation" if facts["yes_no"] else "text-classification"
        _write(saved, "reward_model_card.md.j2", base, facts, task)


def write_model_card(folder: Path, name: str, result: dict[str, Any], fewest_rows: int) -> None:
    """The card of VerifyRM `name` from the result of `train_verifyrm`. Calibration needs `fewest_rows` held out."""
    card = _rendered("model_card.md.j2", name=name, yes_no=recorded(str(folder)), fewest_rows=fewest_rows, **result)
    write_text(folder / NAME, card, durable=False)


def _write(folder: Path, template: str, base: str, facts: dict[str, Any], task: str) -> None:
    inherited, text = _card_of(base)
    facts = {**facts, "adapter": (folder / ADAPTER_CONFIG).is_file()}
    header = {**inherited, "library_name": "transformers", "pipeline_tag": task, "tags": ["cooper-rl"]}
    if not Path(base).is_dir():  # a name on the hub, which the card may link to
        header["base_model"] = base
    card = _rendered(template, **facts, base=base, base_card=text)
    write_text(folder / NAME, f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n{card}", durable=False)


def _card_of(base: str) -> tuple[dict[str, Any], str]:
    """The fields of the base model's card that still hold, and its text. Both are empty without a local card."""
    path = Path(base) / NAME
    if not path.is_file():
        return {}, ""
    card = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    found = _FRONT_MATTER.match(card)
    try:
        header, _ = parse_yaml(found[1] if found else "")
    except ValueError:  # cards are written for people; fields that cannot be parsed are left out
        header = None
    inherited = {key: header[key] for key in _INHERITED if key in header} if isinstance(header, dict) else {}
    return inherited, card[found.end() if found else 0 :].strip()


@cache
def _environment() -> Environment:
    """Kept, because it keeps the compiled templates: cards are written with every checkpoint."""
    loader = PackageLoader("cooper_rl.record")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"python": repr, "kind": default_text}
    return environment


def _rendered(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)
