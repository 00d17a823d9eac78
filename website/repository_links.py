"""Links from the pages to files of the repository. Each file becomes a page that shows it, so the site is whole."""

import os
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
TOP_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "packages/base/README.md": "packages/base.md",
    "packages/verify/README.md": "packages/verify.md",
    "packages/audit/README.md": "packages/audit.md",
    "packages/rl/README.md": "packages/rl.md",
    "packages/lab/README.md": "packages/lab.md",
    "benchmarks/README.md": "measured/benchmarks.md",
    "benchmarks/speed/README.md": "measured/performance.md",
    "benchmarks/runs/alarm.md": "measured/alarm.md",
    "benchmarks/runs/audit.md": "measured/audit.md",
    "benchmarks/cluster/README.md": "measured/cluster.md",
    "benchmarks/gpu/README.md": "measured/gpu.md",
    "benchmarks/service/README.md": "measured/service.md",
    "benchmarks/trainers/README.md": "measured/trl.md",
    "benchmarks/real_model/README.md": "measured/real-model.md",
    "benchmarks/real_runs/README.md": "measured/real-runs.md",
    "packages/lab/src/cooper_lab/arena/README.md": "measured/arena.md",
    "packages/lab/src/cooper_lab/arithmetic/README.md": "measured/demo.md",
    "packages/lab/src/cooper_lab/benchmarks/README.md": "measured/verifiers.md",
    "packages/lab/src/cooper_lab/designs/README.md": "measured/designs.md",
    "benchmarks/overopt/README.md": "measured/overoptimisation.md",
    "benchmarks/paper/README.md": "measured/paper.md",
    "packages/lab/src/cooper_lab/plan/README.md": "measured/planner.md",
    "packages/rl/src/cooper_rl/reward/README.md": "packages/reward-input.md",
    "packages/rl/src/cooper_rl/service/README.md": "packages/service.md",
    "packages/verify/src/cooper_verify/rules/README.md": "packages/rules.md",
    "packages/rl/tests/adapters/README.md": "measured/trainers.md",
    "packages/rl/tests/crash/README.md": "measured/kills.md",
    "tests/fuzz/README.md": "measured/fuzzing.md",
}
"""Pages outside docs/ that are part of the site, and their place in it. Evidence lies beside what made it."""
_LINK_OR_FENCE = re.compile(r"^ *```.*?^ *```|(\]\()((?!https?:|mailto:|#)[^)#\s]+)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash", ".ipynb": "json"}


def linked_files(markdown: str, page: str) -> set[Path]:
    """The files and folders outside docs/ that a page links to, and the files in those folders."""
    found = {path for match in _LINK_OR_FENCE.finditer(markdown) if (path := _outside(match[2], page)) is not None}
    return found | {file for folder in found if folder.is_dir() for file in _files_in(folder)}


def site_links(markdown: str, page: str) -> str:
    """The page with its links pointed at pages of the site. What is no file stays, for MkDocs to complain about."""

    def replaced(match: re.Match[str]) -> str:
        uri = _site_uri(match[2], page) if match[2] else None
        return match[0] if uri is None else f"{match[1]}{os.path.relpath(uri, PurePosixPath(page).parent)}"

    return _LINK_OR_FENCE.sub(replaced, markdown)


def source_uri(path: Path) -> str:
    """The place in the site of a file or folder of the repository."""
    inside = path.relative_to(ROOT).as_posix()
    return f"source/{inside}/index.md" if path.is_dir() else f"source/{inside}.md"


def source_page(path: Path) -> str:
    """A page that shows a file, or lists the files of a folder. Searches leave it out."""
    name = path.relative_to(ROOT).as_posix()
    head = f"---\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(f"- [{file.name}]({file.name}.md)\n" for file in _files_in(path))
    fence = "`" * 8
    return f"{head}{fence}{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8')}\n{fence}\n"


def _repository_path(link: str, page: str) -> Path:
    """The file that a link names. Pages lie in docs/, but for those of TOP_PAGES."""
    top = next((file for file, uri in TOP_PAGES.items() if uri == page), None)
    folder = (ROOT / (top or f"docs/{page}")).parent
    return Path(os.path.normpath(folder / link))


def _outside(link: str | None, page: str) -> Path | None:
    """The file that a link names, if it is one outside the site."""
    if link is None or page.startswith(("source/", "settings/")):
        return None
    path = _repository_path(link, page)
    inside_site = path.is_relative_to(ROOT / "docs") or path.relative_to(ROOT).as_posix() in TOP_PAGES
    return None if inside_site or not path.exists() else path


def _site_uri(link: str, page: str) -> str | None:
    """The place in the site that a link of a page leads to; None if it stays as it is."""
    if page.startswith(("source/", "settings/")):
        return None
    path = _repository_path(link, page)
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    return TOP_PAGES.get(path.relative_to(ROOT).as_posix()) or (source_uri(path) if path.exists() else None)


def _files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in _LANGUAGES)
