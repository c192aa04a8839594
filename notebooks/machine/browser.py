"""Find a Chromium for the browser tests, or install one.

Looked for, in this order: the one named in CHROMIUM, one on the path, the usual places
of macOS and Windows, Playwright's own. If there is none: the system's package, for an
administrator of a Debian or Ubuntu machine, then Playwright's download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
         "microsoft-edge")
PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
          "/Applications/Chromium.app/Contents/MacOS/Chromium",
          r"C:\Program Files\Google\Chrome\Application\chrome.exe",
          r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe")
DOWNLOAD_SECONDS, PACKAGE_SECONDS = 300, 900


def works(program: str) -> bool:
    """Whether it starts at all (a name can be left over from a removed package)."""
    try:
        done = subprocess.run([program, "--version"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def playwrights_own() -> str | None:
    """Where Playwright keeps its Chromium, when it has downloaded one."""
    script = ("from playwright.sync_api import sync_playwright\n"
              "with sync_playwright() as p: print(p.chromium.executable_path)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True,
                          encoding="utf-8")
    place = done.stdout.strip()
    return place if done.returncode == 0 and Path(place).exists() else None


def find() -> str | None:
    """A Chromium that starts, or None."""
    candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), *PLACES]
    for program in candidates:
        if program and Path(program).exists() and (os.name == "nt" or works(program)):
            return program
    return playwrights_own()


def run_quietly(command: list[str], seconds: float) -> bool:
    """Run an installer; True when it says that it worked."""
    settings = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=settings, timeout=seconds, encoding="utf-8",
                              errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  {' '.join(command[:3])}: {error}", flush=True)
        return False
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no message"])[-1]
        print(f"  {' '.join(command[:3])}: {last}", flush=True)
    return done.returncode == 0


def may_install_packages() -> bool:
    return (shutil.which("apt-get") is not None and hasattr(os, "geteuid")
            and os.geteuid() == 0)


def install() -> None:
    """Try the ways there are; what came of it is for ``find`` to say."""
    if may_install_packages():
        print("No Chromium here: installing the system's package.", flush=True)
        if (run_quietly(["apt-get", "update"], PACKAGE_SECONDS) and run_quietly(
                ["apt-get", "install", "-y", "--no-install-recommends", "chromium",
                 "fonts-dejavu-core"], PACKAGE_SECONDS)):
            return
    print("No Chromium here: downloading Playwright's.", flush=True)
    run_quietly([sys.executable, "-m", "playwright", "install", "chromium"],
                DOWNLOAD_SECONDS)


def find_or_install() -> str | None:
    program = find()
    if program is None:
        install()
        program = find()
    return program
