r"""Answers that there is none: "no solution", `\emptyset`, "none", DNE."""

import re
from dataclasses import dataclass

from cooper_verify.rules.text.plain_text import plain_text

_KINDS = r"(?:solutions?|roots?|values?|integers?|numbers?)"
_EMPTY = re.compile(
    r"\u2205|\\emptyset|(?:the )?(?:empty|null) set|none"
    rf"|(?:there (?:is|are) )?no (?:real |integer |such |possible )?{_KINDS}(?: exists?)?"
    r"|keine l\u00f6sung|aucune solution|sin soluci\u00f3n"
    r"|\u043d\u0435\u0442 \u0440\u0435\u0448\u0435\u043d\u0438\u0439"
    r"|\u65e0\u89e3|\u89e3\u306a\u3057|\ud574\uac00 \uc5c6\ub2e4|\ud574 \uc5c6\uc74c"
)
_UNDEFINED = re.compile(r"dne|(?:(?:the )?limit )?(?:does not|doesn't) exist|(?:is )?(?:undefined|not defined)")


@dataclass(frozen=True)
class Empty:
    """No value: there is no solution, or (`is_undefined`) no such number."""

    is_undefined: bool


def read_none(text: str) -> Empty | None:
    plain = plain_text(text) if "\u2205" not in text else text.strip()
    if _EMPTY.fullmatch(plain) or "".join(text.split()) in (r"\emptyset", "\u2983\u2984", "{}"):
        return Empty(False)
    return Empty(True) if _UNDEFINED.fullmatch(plain) else None
