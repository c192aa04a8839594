"""A real Chromium, a JupyterLab of the tests' own, and static pages without a kernel."""

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

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def find_chromium(playwright) -> str:
    """The Chromium named in CHROMIUM, one on the path, or Playwright's own."""
    found = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES),
             playwright.chromium.executable_path]
    for path in found:
        if path and Path(path).exists():
            return path
    raise RuntimeError("no Chromium found: install one (Debian: apt-get install chromium; "
                       "elsewhere: playwright install chromium) or name it in CHROMIUM")


@pytest.fixture(scope="session")
def chromium():
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Lab:
    """A JupyterLab over a folder of its own; kernels talk over files, not over ports."""

    def __init__(self, folder: Path):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.pages = folder / "pages"
        self.runtime = folder / "run"
        self.pages.mkdir()
        self.runtime.mkdir()
        self.quiet_settings()
        self.log = (folder / "lab.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(self.command(), env=self.environment(),
                                        stdout=self.log, stderr=self.log)

    def quiet_settings(self):
        """No question about news, no look for a newer version, every cell in the page."""
        chosen = {"apputils-extension/notification": {"fetchNews": "false",
                                                      "checkForUpdates": False},
                  "notebook-extension/tracker": {"windowingMode": "none"}}
        for name, settings in chosen.items():
            path = self.folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(settings), encoding="utf-8")

    def command(self):
        return [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                f"--ServerApp.port={self.port}", "--ServerApp.ip=127.0.0.1",
                f"--ServerApp.root_dir={self.pages}", "--IdentityProvider.token=",
                "--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True",
                "--KernelManager.transport=ipc",
                f"--KernelManager.ip={self.runtime / 'k'}"]

    def environment(self):
        return {**os.environ, "JUPYTER_RUNTIME_DIR": str(self.runtime),
                "JUPYTERLAB_SETTINGS_DIR": str(self.folder / "settings"),
                "JUPYTERLAB_WORKSPACES_DIR": str(self.folder / "workspaces"),
                "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
                "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
                    filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                return self.get("api/status")
            except OSError:
                time.sleep(0.2)
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
    # A short path: a kernel's socket may have 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="lab", ignore_cleanup_errors=True) as folder:
        server = Lab(Path(folder))
        try:
            server.wait()
            yield server
        finally:
            server.close()
