"""Write ``requirements.lock``: every package of pyproject.toml, exact, with hashes.

``make lock`` runs it, for those who maintain the course. torch is left out, because its
right build depends on the machine (install.py puts it in first); so are the accelerator
libraries that come with torch. The file names no place to download from.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from install import LOCK, ROOT, TORCH, TORCH_INTEL_MAC  # noqa: E402

EXTRAS = ("course", "test", "bench", "make")
INTEL_MAC = "sys_platform == 'darwin' and platform_machine == 'x86_64'"
NOT_INTEL_MAC = "(sys_platform != 'darwin' or platform_machine != 'x86_64')"
EVERYWHERE = "sys_platform == 'darwin' or sys_platform == 'linux' or sys_platform == 'win32'"
WITH_TORCH = re.compile(r"^(nvidia-|cuda-|triton$|torch$)")
HEADER = """\
# Every package of the course but torch: exact versions and their hashes, for Linux,
# macOS and Windows. Made by `make lock` from pyproject.toml; do not edit.
"""


def resolve(folder: Path) -> str:
    """What uv resolves for every platform, torch held at the versions we install."""
    constraints = folder / "constraints.txt"
    constraints.write_text(f"{TORCH} ; {NOT_INTEL_MAC}\n{TORCH_INTEL_MAC} ; {INTEL_MAC}\n",
                           encoding="utf-8")
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *extras,
               "--universal", "--python-version", "3.11", "--fork-strategy", "fewest",
               "--only-binary", ":all:",
               "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url",
               "--constraints", str(constraints), "--quiet"]
    settings = {name: value for name, value in os.environ.items()
                if not name.startswith(("UV_", "PIP_"))}  # the same lock on every machine
    return subprocess.run(command, cwd=ROOT, env=settings, check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout


def without_torch(resolved: str) -> str:
    """The entries (a name line and its hash lines) that do not come with torch."""
    entries = re.split(r"^(?=[A-Za-z0-9])", resolved, flags=re.MULTILINE)
    return "".join(entry for entry in entries
                   if not WITH_TORCH.match(re.split(r"[=\s]", entry, maxsplit=1)[0]))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        lock = HEADER + without_torch(resolve(Path(folder))).replace(f" ; {EVERYWHERE}", "")
    LOCK.write_text(lock, encoding="utf-8")
    count = len(re.findall(r"^[A-Za-z0-9]", lock, flags=re.MULTILINE))
    print(f"{LOCK.name}: {count} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
