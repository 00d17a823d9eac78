"""Finds the fenced blocks of the documentation and the shell commands in them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from repository import ROOT

BESIDE_SCRIPTS = [
    page for folder in ("benchmarks", "packages", "tests") for page in sorted((ROOT / folder).rglob("*.md"))
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *BESIDE_SCRIPTS]
_BLOCK = re.compile(
    r"""^(?P<indent>[ ]*)```(?P<language>\w*)(?:[ ]title="(?P<title>[^"]+)")?[ ]*\n(?P<text>.*?)^(?P=indent)```[ ]*$""",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Snippet:
    """A fenced block: its language, and the file that it shows, if it has a title."""

    place: str
    language: str
    title: str | None
    text: str


def all_snippets() -> list[Snippet]:
    """Every fenced block of README.md, CONTRIBUTING.md, docs/ and the pages beside scripts."""
    return [snippet for page in PAGES for snippet in snippets_of(page.read_text(encoding="utf-8"), name_of(page))]


def name_of(page: Path) -> str:
    """A page's path below docs/, or below the repository."""
    return str(page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT))


def snippets_of(page: str, name: str) -> list[Snippet]:
    """The fenced blocks of one page, with the line each begins on."""
    return [
        Snippet(
            place=f"{name}:{page.count(chr(10), 0, match.start('language')) + 1}",
            language=match["language"],
            title=match["title"],
            text=re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE),
        )
        for match in _BLOCK.finditer(page)
    ]


def shell_commands(text: str) -> list[list[str]]:
    """The words of every command, without comments, loops, leading `NAME=value` and `> file`; variables become 0."""
    commands: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(re.sub(r"\$\w+", "0", line), posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        commands.append([])
        for word in lexer:
            if set(word) <= set(";&|"):
                commands.append([])
            else:
                commands[-1].append(word)
    return [words for command in commands if (words := _without_frame(command))]


def _without_frame(words: list[str]) -> list[str]:
    """A command without the words of a loop or an assignment around it; empty if nothing else is left."""
    if words[:1] in (["for"], ["done"]):
        return []
    if ">" in words:
        words = words[: words.index(">")]
    while words and (words[0] == "do" or re.fullmatch(r"\w+=.*", words[0])):
        words = words[1:]
    return words
