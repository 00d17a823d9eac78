"""Where the repository lies, and the data beside it that some tests read; they skip where it is absent."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
PACKAGES = sorted((ROOT / "packages").iterdir())
"""The folder of each package."""
SOURCES = [next((package / "src").iterdir()) for package in PACKAGES]
"""The importable folder of each package."""
