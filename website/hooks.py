"""What MkDocs calls while it builds the site: pages that are generated, links into the repository, formulas."""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from repository_links import TOP_PAGES, linked_files, site_links, source_page, source_uri
from settings_pages import settings_pages

ROOT = Path(__file__).parents[1]
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)

_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>[^<]*</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/, the settings, and every file of it that a page links to."""
    for file, uri in TOP_PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / file).read_text(encoding="utf-8")))
    for uri, content in settings_pages().items():
        files.append(File.generated(config, uri, content=content))
    for path in sorted({linked for file in files.documentation_pages() for linked in _linked_from(file)}):
        files.append(File.generated(config, source_uri(path), content=source_page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links into the repository at their pages of the site."""
    return site_links(markdown, page.file.src_uri)


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw without a script, and let names in tables break at / and _."""
    return _CELL.sub(_breakable, _FORMULA.sub(_math, content))


def _linked_from(file: File) -> set[Path]:
    return linked_files(file.content_string, file.src_uri)


def _math(formula: re.Match[str]) -> str:
    inline, block = formula[2], formula[3]
    found = convert(html.unescape(inline or block), display="inline" if inline else "block")
    return found.replace('<mo accent="true">&#x02015;</mo>', '<mo stretchy="true">&#x203E;</mo>')  # a bar of full width


def _breakable(cell: re.Match[str]) -> str:
    return _CODE.sub(lambda code: re.sub(r"(?<!<)([/_])", r"\1<wbr>", code[0]), cell[0])
