"""The site, built once from the stored pages, and pages of it with the network shut."""

import http.server
import threading
from functools import partial

import pytest

from notebooks.machine.site import make


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the finished site."""
    folder = tmp_path_factory.mktemp("site")
    make.make(folder / "out", folder / "workshop", stored=True)
    return folder / "out"


def shut(context, allowed="file:"):
    """No request leaves for another place; `asked` remembers those that tried."""
    asked = []

    def decide(route):
        if route.request.url.startswith((allowed, "blob:", "data:")):
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    context.route("**/*", decide)
    return asked


@pytest.fixture(scope="module")
def visit(chromium, site):
    """``visit("03-rope.html")``: the page from a folder, when its explorers live."""
    contexts = []

    def visit_one(name, *, start=None, ready=True, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900},
                                          "accept_downloads": True, **options})
        contexts.append(context)
        start = start or site.as_uri()
        page = context.new_page()
        page.asked, page.complaints = shut(context, start), []
        page.on("console", lambda said: said.type == "error"
                and page.complaints.append(said.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(f"{start}/{name}")
        if ready:
            page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield visit_one
    for context in contexts:
        context.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Nothing on the console."""


@pytest.fixture(scope="module")
def served(site):
    """The same folder behind an ordinary web server on this machine."""
    handler = partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
