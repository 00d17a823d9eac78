"""Finds what a browser would run or fetch in an HTML page."""

from html.parser import HTMLParser

RUNS = {"script", "iframe", "object", "embed", "link", "base", "form", "img", "meta"}


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in RUNS and not (tag == "meta" and names <= {"charset", "name", "content"}):
            self.found.append(tag)
        self.found += [name for name in names if name.startswith("on")]
        self.found += [value for _, value in attrs if value and value.strip().lower().startswith("javascript:")]


def executable_parts(page: str) -> list[str]:
    """Tags that run or fetch something, event handlers, and `javascript:` addresses, in order."""
    finder = _Finder()
    finder.feed(page)
    return finder.found
