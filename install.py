"""Installs Cooper from this clone with pip, with the build of PyTorch that fits the machine.

    python install.py                # the five packages, into the environment of this Python
    python install.py verify audit   # these and what they need: no PyTorch
    python install.py --check        # what would be installed, and how much; downloads nothing

On Linux PyPI's PyTorch brings CUDA, and Cooper takes 6.1 GB of disk in place of 1.3. Where no GPU is found, the build
for CPUs is installed first, from the index that pip is set to or from PyTorch's own. Where neither offers one, nothing
is downloaded: the script says so, and `--with-cuda` goes on. Proxies, mirrors and certificates are pip's.
"""

import argparse
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parent
PACKAGES = ("base", "verify", "audit", "rl", "lab")
"""Each needs those before it. PyTorch comes with the fourth."""
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
GPU_DEVICES = ("/dev/nvidia0", "/dev/dxg", "/dev/kfd")
SIZES = {"verify": "110 MB", "audit": "182 MB", "rl": "1.3 GB", "cuda": "6.1 GB"}
"""On disk, with all that the packages need; `cuda` is `rl` with PyPI's PyTorch on Linux."""


def wanted(names: list[str]) -> list[str]:
    """The packages that were named, with extras, and those that they need."""
    extras = {name.partition("[")[0]: name for name in names or PACKAGES}
    if unknown := [name for name in extras if name not in PACKAGES]:
        raise SystemExit(f"{unknown[0]}: no package of Cooper; there are {', '.join(PACKAGES)}")
    last = max(PACKAGES.index(name) for name in extras)
    return [extras.get(name, name) for name in PACKAGES[: last + 1]]


def has_gpu() -> bool:
    return bool(shutil.which("nvidia-smi")) or any(Path(device).exists() for device in GPU_DEVICES)


def torch_is_there() -> bool:
    try:
        return bool(version("torch"))
    except PackageNotFoundError:
        return False


def pinned_torch() -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("torch=="))


def pip(*arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.DEVNULL if capture else None,
    )


def offers_cpu_build(*where: str) -> bool:
    """Whether pip finds the pinned version for CPUs there. On Linux its name says so; elsewhere no build has CUDA."""
    if sys.platform != "linux":
        return True
    listed = pip("index", "versions", "torch", "--retries=1", *where, capture=True).stdout
    return f"{pinned_torch().removeprefix('torch==')}+cpu" in listed.replace(",", " ").split()


def cpu_build(index: str) -> list[str] | None:
    """The options of pip that find PyTorch for CPUs, in the usual index or the other; None where neither has it."""
    places = [[], ["--index-url", index]] if index else [[]]
    return next((place for place in places if offers_cpu_build(*place)), None)


def torch_first(options: argparse.Namespace) -> tuple[list[str] | None, str]:
    """The options for installing PyTorch before the packages, None where they bring it, and what they take then."""
    if torch_is_there():
        return None, f"PyTorch {version('torch')} is there and stays"
    if has_gpu():
        return None, f"a GPU was found: PyTorch with CUDA, {SIZES['cuda']} in all"
    if (place := cpu_build(options.torch_index)) is not None:
        return place, f"no GPU was found: PyTorch for CPUs, {SIZES['rl']} in all"
    said = f"no GPU was found, and no index offers {pinned_torch()} for CPUs: PyTorch with CUDA, {SIZES['cuda']} in all"
    if not options.with_cuda and not options.check:
        raise SystemExit(
            f"{said}. Nothing was downloaded. Name an index that has it (--torch-index URL), set HTTPS_PROXY where a "
            f"proxy stands between, or take it with --with-cuda."
        )
    return None, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="of base, verify, audit, rl[EXTRAS], lab; all by default")
    parser.add_argument("--check", action="store_true", help="say what would be installed, and download nothing")
    parser.add_argument("--with-cuda", action="store_true", help="go on where no build for CPUs is found")
    parser.add_argument("--torch-index", default=TORCH_INDEX, help=f"where PyTorch for CPUs is; {TORCH_INDEX}")
    parser.add_argument("--torch-only", action="store_true", help="install PyTorch for CPUs, and nothing else")
    options = parser.parse_args()
    packages = wanted(options.packages)
    first, says = None, f"{SIZES['audit' if 'audit' in packages else 'verify']}, without PyTorch"
    if len(packages) > PACKAGES.index("rl"):
        first, says = torch_first(options)
    print(f"{', '.join(packages)}: {says}", flush=True)
    if options.check:
        return 0
    if first is not None and (failed := pip("install", "--no-deps", "--retries=1", *first, pinned_torch()).returncode):
        return failed
    if options.torch_only:
        return 0
    return pip("install", "--constraint", "constraints.txt", *(f"./packages/{name}" for name in packages)).returncode


if __name__ == "__main__":
    sys.exit(main())
