"""The dry run of a release: builds the wheel and the sdist of each package, and checks what a package index would show.

    make release-check        # into dist/; nothing is published

The release workflow (`.github/workflows/release.yml`) runs the same. A wheel is built from its sdist. The metadata must
be valid, the description must have no link that only leads somewhere inside the repository, and where twine is
installed its strict check must pass too.
"""

import argparse
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(project.parent.name for project in ROOT.glob("packages/*/pyproject.toml"))
VERSION = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
INSIDE = re.compile(r"\]\((?!https?:|#)([^)]*)\)")
"""A link to a file."""
WANTED = ("summary", "description", "license_expression", "keywords", "classifiers", "project_urls", "requires_python")


def build(package: str, folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT / "packages" / package]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"cooper-{package} cannot be built:\n{done.stdout}{done.stderr}")


def metadata_of(wheel: Path) -> Metadata:
    """Raises an ExceptionGroup of all that an index would refuse."""
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(files.read(name), validate=True)


def faults_of(about: Metadata, version: str) -> list[str]:
    found = [f"no {field}" for field in WANTED if not getattr(about, field)]
    if str(about.version) != version:
        found.append(f"version {about.version}, and the code has {version}")
    if about.description_content_type != "text/markdown":
        found.append(f"a description of type {about.description_content_type}")
    return found + [f"the description links to {link}" for link in INSIDE.findall(about.description or "")]


def check(folder: Path) -> list[str]:
    """Build the packages into the folder, print a line for each file, and return what is wrong."""
    (version,) = VERSION.findall((ROOT / "packages/base/src/cooper_base/__init__.py").read_text(encoding="utf-8"))
    faults: list[str] = []
    for package in PACKAGES:
        build(package, folder)
        wheel, sdist = (folder / f"cooper_{package}-{version}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
        about = metadata_of(wheel)
        faults += [f"{wheel.name}: {fault}" for fault in faults_of(about, version)]
        sizes = ", ".join(f"{file.name} {file.stat().st_size / 1e3:,.0f} kB" for file in (wheel, sdist))
        print(f"{about.name} {about.version}, {about.license_expression}, Python {about.requires_python}: {sizes}")
    if find_spec("twine") is None:
        print("twine is not installed: its check is left to the workflow")
    elif subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *folder.glob("cooper_*")]).returncode:
        faults.append("twine refuses a file")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    faults = check(options.out.absolute())
    print("\n".join(faults) if faults else "nothing was published; the release workflow would publish these files")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
