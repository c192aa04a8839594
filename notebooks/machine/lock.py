"""Write ``requirements.lock`` and ``environment.yml`` from pyproject.toml's one list.

``make lock`` runs it, for those who maintain the course. The lock has every package,
exact, with hashes, and names no place to download from. torch is left out, because its
right build depends on the machine (install.py puts it in first); so are the accelerator
libraries that come with torch. environment.yml is what a reader needs, for conda and
Binder, with conda-forge's CPU build of torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

sys.path.insert(0, str(Path(__file__).resolve().parent))
from install import LOCK, ROOT, TORCH, TORCH_INTEL_MAC  # noqa: E402

EXTRAS = ("course", "test", "bench", "site", "classroom", "make")
INTEL_MAC = "sys_platform == 'darwin' and platform_machine == 'x86_64'"
NOT_INTEL_MAC = "(sys_platform != 'darwin' or platform_machine != 'x86_64')"
EVERYWHERE = " or ".join(f"sys_platform == '{system}'"
                         for system in ("darwin", "linux", "win32"))
WITH_TORCH = re.compile(r"^(nvidia-|cuda-|triton$|torch$)")
HEADER = """\
# Every package of the course but torch: exact versions and their hashes, for Linux,
# macOS and Windows. Made by `make lock` from pyproject.toml; do not edit.
"""


def resolve(folder: Path) -> str:
    """What uv resolves for every platform, torch held at the versions we install."""
    constraints = folder / "constraints.txt"
    constraints.write_text(f"{TORCH} ; {NOT_INTEL_MAC}\n"
                           f"{TORCH_INTEL_MAC} ; {INTEL_MAC}\n",
                           encoding="utf-8")
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *extras,
               "--universal", "--python-version", "3.11", "--fork-strategy", "fewest",
               "--only-binary", ":all:", "--prerelease", "disallow",
               "--generate-hashes", "--no-header", "--no-annotate",
               "--no-emit-index-url",
               "--constraints", str(constraints), "--quiet"]
    settings = {name: value for name, value in os.environ.items()
                if not name.startswith(("UV_", "PIP_"))}  # the same lock everywhere
    return subprocess.run(command, cwd=ROOT, env=settings, check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout


def without_torch(resolved: str) -> str:
    """The entries (a name line and its hash lines) that do not come with torch."""
    entries = re.split(r"^(?=[A-Za-z0-9])", resolved, flags=re.MULTILINE)
    return "".join(entry for entry in entries
                   if not WITH_TORCH.match(re.split(r"[=\s]", entry, maxsplit=1)[0]))


CONDA_PYTHON = "3.12"
NOT_ON_CONDA_FORGE = {"wordllama"}
CONDA_HEADER = """\
# For conda, mamba and Binder. Made by `make lock` from pyproject.toml; do not edit.
name: apex-lessons
channels:
  - conda-forge
dependencies:
"""


def reader_requirements() -> list[Requirement]:
    """What a reader needs, as pyproject.toml says it, for Linux."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    written = project["dependencies"] + project["optional-dependencies"]["course"]
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    wanted = map(Requirement, written)
    return [one for one in wanted if one.marker is None or one.marker.evaluate(linux)]


def conda_environment() -> str:
    """environment.yml: conda-forge's names, the rest and the course through pip."""
    from_conda, from_pip = [f"python={CONDA_PYTHON}", "pip"], []
    for wanted in reader_requirements():
        if wanted.name in NOT_ON_CONDA_FORGE:
            from_pip.append(f"{wanted.name}{wanted.specifier}")
        elif wanted.name == "torch":
            from_conda.append(f"pytorch {wanted.specifier} cpu_*")
        else:
            from_conda.append(f"{wanted.name}{wanted.specifier}")
    lines = [f'  - "{word}"\n' for word in from_conda]
    pip_lines = [f'      - "{word}"\n' for word in [*from_pip, "-e ."]]
    return CONDA_HEADER + "".join(lines) + "  - pip:\n" + "".join(pip_lines)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        resolved = without_torch(resolve(Path(folder)))
    lock = HEADER + resolved.replace(f" ; {EVERYWHERE}", "")
    LOCK.write_text(lock, encoding="utf-8")
    (ROOT / "environment.yml").write_text(conda_environment(), encoding="utf-8")
    count = len(re.findall(r"^[A-Za-z0-9]", lock, flags=re.MULTILINE))
    print(f"{LOCK.name}: {count} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
