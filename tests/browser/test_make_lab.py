"""What `make lab` starts: the reader's copy opens, nothing pops up, nothing leaves the machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from notebooks.machine import build, working_copy
from tests.browser.conftest import free_port

# working_copy.py on another folder than the course's own, so that no test writes there.
LAUNCH = """
import sys
from pathlib import Path
sys.path.insert(0, {machine!r})
import working_copy
working_copy.ROOT = Path({root!r})
working_copy.PAGES, working_copy.COPY = working_copy.ROOT / "notebooks", \
    working_copy.ROOT / "my-course"
sys.exit(working_copy.main(["lab", *{options!r}]))
"""


def start(root, port):
    options = ["--no-browser", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
               "--IdentityProvider.token=", "--ServerApp.ip=127.0.0.1"]
    script = LAUNCH.format(machine=str(Path(working_copy.__file__).parent), root=str(root),
                           options=options)
    settings = os.environ | {"JUPYTER_CONFIG_DIR": str(root / "config"),
                             "JUPYTERLAB_SETTINGS_DIR": str(root / "settings"),
                             "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
                             "JUPYTER_RUNTIME_DIR": str(root / "run"), "LAB_OPTIONS": ""}
    log = (root / "lab.log").open("w", encoding="utf-8")
    return subprocess.Popen([sys.executable, "-c", script], env=settings, stdout=log, stderr=log)


def wait_until_it_answers(process, url, root, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            return json.load(urllib.request.urlopen(f"{url}/api/status", timeout=10))
        except OSError:
            time.sleep(0.3)
    raise RuntimeError((root / "lab.log").read_text(encoding="utf-8")[-3000:])


@pytest.fixture(scope="module")
def course():
    """A course of two pages in a folder of its own, opened as `make lab` opens it."""
    with tempfile.TemporaryDirectory(prefix="a course ", ignore_cleanup_errors=True) as folder:
        root, port = Path(folder), free_port()
        (root / "notebooks").mkdir()
        for page in build.page_sources()[:2]:
            shutil.copy(build.page_of(page), root / "notebooks")
        process, url = start(root, port), f"http://127.0.0.1:{port}"
        try:
            wait_until_it_answers(process, url, root)
            yield root, url
        finally:
            process.terminate()
            process.wait(30)


def test_the_copy_opens_and_links_lead_to_the_next_page(course, open_page):
    root, url = course
    assert sorted(path.name for path in (root / "my-course").glob("*.ipynb")) == [
        build.page_of(page).name for page in build.page_sources()[:2]]
    page = open_page("about:blank")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{url}/")  # the address that the reader's browser opens
    page.get_by_role("heading", name="Start here").first.wait_for(timeout=90_000)
    page.get_by_role("tab", name="00-start-here.ipynb").first.wait_for()
    page.locator(".jp-RenderedMarkdown a", has_text="01").first.click()
    page.get_by_role("tab", name="01-embedding-scaling.ipynb").first.wait_for(timeout=60_000)
    page.get_by_role("heading", name="Embedding scaling").first.wait_for(timeout=60_000)
    assert page.locator(".jp-Dialog").count() == 0
    assert page.get_by_text("official Jupyter news").count() == 0
    outside = [one for one in asked if one.startswith("http") and not one.startswith(url)]
    assert outside == []
