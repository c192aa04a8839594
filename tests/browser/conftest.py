"""A real Chromium, a JupyterLab of the tests' own, static pages without a kernel."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from notebooks.machine import build

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]


def find_chromium(playwright) -> str:
    """The Chromium named in CHROMIUM, one on the path, or Playwright's own."""
    found = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES),
             playwright.chromium.executable_path]
    for path in found:
        if path and Path(path).exists():
            return path
    raise RuntimeError("no Chromium found: install one (Debian: apt-get install "
                       "chromium; elsewhere: playwright install chromium) or name it "
                       "in CHROMIUM")


def running_chromium():
    """The browser of the session; its fixture stands in tests/conftest.py."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright),
                                             args=FLAGS)
        yield browser
        browser.close()


def opener(chromium):
    """``open_page(url, **context)``: a page that remembers what its console said."""
    contexts = []

    def open_one(url, **options):
        context = chromium.new_context(**{"viewport": {"width": 1180, "height": 900},
                                          "accept_downloads": True, **options})
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda said: said.type == "error"
                and page.complaints.append(said.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(chromium):
    yield from opener(chromium)


@pytest.fixture(scope="module")
def open_pages(chromium):
    yield from opener(chromium)


# --- JupyterLab -----------------------------------------------------------------------

# What `make lab` runs, on another folder than the course's own: no test writes there.
LAUNCH = """
import sys
from pathlib import Path
sys.path.insert(0, {machine!r})
import working_copy
working_copy.ROOT = Path({root!r})
working_copy.PAGES = working_copy.ROOT / "notebooks"
working_copy.COPY = working_copy.ROOT / "my-course"
sys.exit(working_copy.main(["lab", *{options!r}]))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Lab:
    """JupyterLab as `make lab` starts it; kernels talk over files, not over ports."""

    def __init__(self, folder: Path, pages: list[Path]):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.runtime = folder / "run"
        for name in ("notebooks", "run"):
            (folder / name).mkdir()
        for page in pages:
            shutil.copy(page, folder / "notebooks")
        self.show_every_cell()
        self.find_the_course()
        self.log = (folder / "lab.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(self.command(), env=self.environment(),
                                        stdout=self.log, stderr=self.log)

    def show_every_cell(self):
        """Lab else leaves out of the page what is not in sight."""
        folder = self.folder / "settings" / "@jupyterlab" / "notebook-extension"
        folder.mkdir(parents=True)
        (folder / "tracker.jupyterlab-settings").write_text(
            json.dumps({"windowingMode": "none"}), encoding="utf-8")

    def find_the_course(self):
        """Kernels import this very package, installed or not."""
        folder = self.folder / "ipython" / "profile_default" / "startup"
        folder.mkdir(parents=True)
        (folder / "00-course.py").write_text(
            f"import sys\nsys.path.insert(0, {str(ROOT)!r})\ndel sys\n",
            encoding="utf-8")

    def command(self):
        options = ["--no-browser", f"--ServerApp.port={self.port}",
                   "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1",
                   "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True",
                   "--KernelManager.transport=ipc",
                   f"--KernelManager.ip={self.runtime / 'k'}"]
        machine = str(ROOT / "notebooks" / "machine")
        script = LAUNCH.format(machine=machine, root=str(self.folder), options=options)
        return [sys.executable, "-c", script]

    def environment(self):
        places = {"JUPYTER_RUNTIME_DIR": "run", "JUPYTERLAB_SETTINGS_DIR": "settings",
                  "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
                  "JUPYTER_CONFIG_DIR": "config", "IPYTHONDIR": "ipython"}
        return os.environ | {"OMP_NUM_THREADS": "1", "LAB_OPTIONS": ""} | {
            name: str(self.folder / place) for name, place in places.items()}

    def wait(self, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return self.get("api/status")
            except OSError:
                time.sleep(0.1)
        log = (self.folder / "lab.log").read_text(encoding="utf-8")
        raise RuntimeError(f"JupyterLab did not answer:\n{log[-3000:]}")

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/{path}", timeout=10) as answer:
            return json.load(answer)

    def kernel_of(self, name):
        """The connection file of the kernel that runs a notebook."""
        (session,) = [s for s in self.get("api/sessions") if s["path"] == name]
        return self.runtime / f"kernel-{session['kernel']['id']}.json"

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()


@pytest.fixture(scope="session")
def lab():
    """The course's first two pages; the folder's name is short and has a space.

    A kernel's socket may have a path of 107 characters at most.
    """
    pages = [build.page_of(source) for source in build.page_sources()[:2]]
    with tempfile.TemporaryDirectory(prefix="a course ",
                                     ignore_cleanup_errors=True) as folder:
        server = Lab(Path(folder), pages)
        try:
            server.wait()
            yield server
        finally:
            server.close()
