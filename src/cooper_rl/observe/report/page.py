"""The page: the template with style, scripts and data inlined, so that one file shows itself from anywhere."""

import base64
import hashlib
import json
import math
import re
import time
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cooper_rl import __version__

SCRIPTS = ("elements", "chart", "story", "gallery", "rollouts", "sections", "main")
"""The scripts in the order in which they run."""


def render(title: str, headline: str, notes: Sequence[str], data: dict[str, Any], sample_note: str) -> str:
    """The page as text. Of the runs it holds `data`, which the scripts read, title and headline."""
    environment = Environment(
        loader=PackageLoader("cooper_rl.observe.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    static = files("cooper_rl.observe.report") / "static"
    scripts = [(static / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    return environment.get_template("report.html.j2").render(
        title=title,
        headline=headline,
        notes=notes,
        version=__version__,
        written=time.strftime("%Y-%m-%d %H:%M"),
        single=len(data["runs"]) == 1,
        verdicts=[f"{run['label']}: {run['verdict']['name']}. {run['verdict']['sentence']}" for run in data["runs"]],
        sections=data["sections"],
        style=Markup((static / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        script_hashes=Markup(" ".join(f"'sha256-{_digest(script)}'" for script in scripts)),
        data=Markup(embedded_json(data)),
        sample_note=sample_note,
    )


def embedded_json(value: Any) -> str:
    """JSON that no HTML parser takes for anything else, and that every JavaScript parser reads.

    `<`, `>` and `&` are escaped, so that no tag or comment can begin or end in it; so are surrogates without a partner,
    which UTF-8 cannot hold. Numbers are rounded to five digits. What is not finite becomes text.
    """
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any) -> Any:
    """The value with its numbers rounded, as the page holds it."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        short = float(f"{value:.5g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
