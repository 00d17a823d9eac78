r"""Formulas of chemistry, whose figures are indices in any notation: `H2O`, `Ca(OH)_2`, `SO_4^{2-}`."""

import re
from collections import Counter

from cooper_verify.rules.text.plain_text import bare_text
from cooper_verify.rules.text.text_cache import text_cache

_ELEMENTS = (
    "A[cglmrstu] B[aehikr]? C[adeflmnorsu]? D[bsy] E[rsu] F[elmr]? G[ade] H[efgos]? I[nr]? K[r]? L[airuv] M[cdgnot]"
    " N[abdehiop]? O[gs]? P[abdmortu]? R[abefghnu] S[bcegimnr]? T[abcehilms] U V W Xe Y[b]? Z[nr]"
)
_ELEMENT = rf"(?:{'|'.join(_ELEMENTS.split())})"
_SPECIES = re.compile(rf"\d{{0,3}}(?=[^\d]*[\d+-])(?:{_ELEMENT}\d{{0,3}}|\(|\)\d{{0,3}})+(?:\^?\d?[+-])?")
_ATOMS = re.compile(rf"({_ELEMENT})(\d*)")
_CHARGE = re.compile(r"\d?[+-](?=\s\+|->|\Z)")
_ARROW = re.compile(r"\s*(?:-{1,3}>|\u2192|\u27f6|\\(?:long)?rightarrow(?![a-z])|\\to(?![a-z]))\s*")
_PLUS = re.compile(r"\s\+\s|\+(?=\d?[A-Z])")
_LAYOUT = re.compile(r"[_{}\s]|\\,|\\ce")


@text_cache(4096)
def chemical(text: str) -> str | None:
    """A formula or a reaction without layout, with `^` before charges where it is written; None for all else."""
    sides = _ARROW.split(bare_text(text).strip(" ."))
    found = [[_LAYOUT.sub("", part) for part in _PLUS.split(side)] for side in sides]
    if not all(_SPECIES.fullmatch(part) for side in found for part in side):
        return None
    return "->".join(" + ".join(sorted(side)) for side in found)


def are_same_formula(one: str, other: str) -> bool | None:
    """Whether two texts are one formula of chemistry; None if either is none, or both have the same atoms
    and charges."""
    first = chemical(one)
    second = None if first is None else chemical(other)
    if first is None or second is None:
        return None
    if "^" not in first or "^" not in second:
        first, second = first.replace("^", ""), second.replace("^", "")
    if first == second:
        return True
    return None if _atoms(first) == _atoms(second) else False


def _atoms(formula: str) -> Counter[str]:
    atoms = Counter(_CHARGE.findall(formula))
    for element, count in _ATOMS.findall(formula):
        atoms[element] += int(count or 1)
    return atoms
