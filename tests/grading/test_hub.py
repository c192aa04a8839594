"""A real hub for a class of two: a page, an assignment handed in, collected, graded.

The hub has the configuration of assignments/hub and the accounts of tests/grading/
machine.py; two students come in with a browser by the link that they would be given.
"""

import csv
import json
import math
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest

from apex_lessons.grading.copies import assignment_folders, make_copies
from apex_lessons.grading.task import HIDDEN, load_assignment
from tests.browser.conftest import free_port
from tests.grading.machine import IS_ROOT, PASSWORD, USERS, Machine, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ROPE = ROOT / "assignments" / "rope"
CLASS_REPOSITORY = ROOT / "assignments" / "hub" / "class_repository.py"
STUDENTS = ("anna", "ben")
PAGE = "notebooks/03-rope.ipynb"
# The real configuration with free ports; where there is one account only, also the
# spawner for that. Students' kernels find the course where `make install` would put it.
CONFIGURATION = """
load_subconfig("/srv/apex/hub/jupyterhub_config.py")
c.JupyterHub.hub_port, api_port = {ports}
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{{api_port}}"
c.Spawner.args += ["--LabApp.expose_app_in_browser=True"]
c.Spawner.environment["PYTHONPATH"] = "/srv/apex"
if not {is_root}:
    c.JupyterHub.spawner_class = "simple"
    c.SimpleLocalProcessSpawner.home_dir_template = "/home/{{username}}"
    c.JupyterHub.authenticator_class = "dummy"
"""
# Lab leaves out of the page what is not in sight, but for this setting.
WHOLE_PAGES = json.dumps({"windowingMode": "none"})


def git(*words, folder):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org",
                    *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """The assignment's copies, as `make assignments` makes them."""
    folder = tmp_path_factory.mktemp("copies")
    return make_copies(ROPE, folder, run=False)


@pytest.fixture(scope="module")
def machine(tmp_path_factory, copies):
    """A machine as assignments/hub/README.md sets it up, with the teacher's folder."""
    machine = Machine(tmp_path_factory.mktemp("machine"))
    course = machine.make("srv", "apex")
    subprocess.run([sys.executable, str(CLASS_REPOSITORY), str(course)], check=True)
    git("init", "-b", "main", folder=course)
    git("add", ".", folder=course)
    git("commit", "-m", "The course", folder=course)
    git("clone", "--bare", ".", str(machine.make("srv", "git", "apex-class")),
        folder=course)
    machine.give("srv/nbgrader/exchange", 0, 0o777)
    release = machine.make("home", "teacher", "class", "student", "rope")
    release.mkdir(parents=True)
    (release / "rope.ipynb").write_bytes(copies["student"].read_bytes())
    for student in STUDENTS:
        settings = machine.make("home", student, ".jupyter", "lab", "user-settings",
                                "@jupyterlab", "notebook-extension")
        settings.mkdir(parents=True)
        (settings / "tracker.jupyterlab-settings").write_text(WHOLE_PAGES,
                                                              encoding="utf-8")
    for name in USERS if IS_ROOT else ():
        machine.run("root", ["chown", "-R", f"{name}:{name}", f"/home/{name}"])
    yield machine
    machine.close()


def teacher(machine, *words):
    """What nbgrader says when the teacher calls it."""
    done = machine.run("teacher", ["nbgrader", *words], "/home/teacher/class",
                       JUPYTER_CONFIG_PATH="/srv/apex/hub", PYTHONPATH="/srv/apex")
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def hub(machine):
    """The hub's address."""
    port, git_port, *ports = (free_port() for _ in range(4))
    machine.make("srv", "trial.py").write_text(CONFIGURATION.format(
        ports=tuple(ports), is_root=IS_ROOT), encoding="utf-8")
    url = f"http://127.0.0.1:{port}"
    machine.git_url = f"git://127.0.0.1:{git_port}/apex-class"
    machine.start("root", ["git", "daemon", "--export-all", "--base-path=/srv/git",
                           "--listen=127.0.0.1", f"--port={git_port}"])
    machine.start("root", ["jupyterhub", "-f", "/srv/trial.py"], APEX_HUB_URL=url)

    def answers():
        try:
            with urllib.request.urlopen(f"{url}/hub/api", timeout=5) as answer:
                return "version" in json.load(answer)
        except OSError:
            return False
    until(answers, 60, lambda: machine.log("jupyterhub"))
    teacher(machine, "release_assignment", "rope")
    return url


# --- two students at work -------------------------------------------------------------

RUN = """async () => {
  const { commands, shell } = window.jupyterapp;
  const { context, sessionContext } = shell.currentWidget;
  await context.ready;
  await sessionContext.ready;
  await sessionContext.session.kernel.info;
  commands.execute("notebook:run-all-cells");
}"""
OPENED = """(name) => window.jupyterapp?.shell?.currentWidget?.context?.path === name"""
ASK = """async (code) => {
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  const future = kernel.requestExecute({ code });
  let said = "";
  future.onIOPub = ({ content }) => { said += content.text ?? ""; };
  await future.done;
  return said;
}"""
EXPLORERS = """
import json, os, pwd
from apex_lessons.explorers.base import Explorer
from ipywidgets.widgets.widget import _instances
print(json.dumps([pwd.getpwuid(os.getuid()).pw_name, os.getcwd(), [
    [type(w).__name__, w.facts()] for w in _instances.values()
    if isinstance(w, Explorer)]]))
"""


@pytest.fixture(scope="module")
def tabs(hub, machine, chromium):
    """student -> a page of the browser: logged in, the course fetched, page 03 open."""
    link = subprocess.run(
        [sys.executable, str(CLASS_REPOSITORY), "link", hub, machine.git_url, PAGE],
        check=True, capture_output=True, encoding="utf-8").stdout.strip()
    contexts = {name: chromium.new_context() for name in STUDENTS}
    pages = {name: context.new_page() for name, context in contexts.items()}
    for name, page in pages.items():
        page.set_default_timeout(120_000)
        page.goto(link)
        page.get_by_label("Username:").fill(name)
        page.get_by_label("Password:").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click(no_wait_after=True)
    for page in pages.values():
        page.wait_for_function(OPENED, arg=f"apex-class/{PAGE}")
        page.evaluate(RUN)
    yield pages
    for context in contexts.values():
        context.close()


def facts_shown(page, explorer):
    """What the explorer saves as CSV."""
    with page.expect_download() as arriving:
        explorer.get_by_role("button", name="Save the numbers as CSV").click()
    rows = csv.DictReader(arriving.value.path().open(encoding="utf-8"))
    return {row["name"]: float(row["value"]) for row in rows if row["part"] == "fact"}


def facts_in_the_kernel(page, kind):
    """The user, the folder and the facts of this class's explorer, from the kernel."""
    user, folder, explorers = json.loads(page.evaluate(ASK, EXPLORERS))
    (facts,) = [facts for name, facts in explorers if name == kind]
    return user, folder, facts


def agree(shown, known):
    return set(shown) == set(known) and all(
        math.isclose(shown[name], known[name], rel_tol=1e-9, abs_tol=1e-9)
        for name in shown)


@pytest.mark.parametrize("student", STUDENTS)
def test_page_03s_explorer_runs(student, tabs):
    """It moves by keyboard, and the user's own kernel hears of it."""
    page = tabs[student]
    page.wait_for_selector(".apx-words p")
    explorer = page.locator(".apx").first
    kind = explorer.get_attribute("data-explorer")
    before = facts_shown(page, explorer)
    said = explorer.locator(".apx-words").inner_text()
    explorer.locator(".apx-range:enabled").first.focus()
    for key in ("PageUp", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function("([node, said]) => node.innerText !== said", arg=[
        explorer.locator(".apx-words").element_handle(), said])
    shown = facts_shown(page, explorer)
    assert set(shown) == set(before) and shown != before
    until(lambda: agree(shown, facts_in_the_kernel(page, kind)[2]), 20,
          lambda: f"{shown} on the page, {facts_in_the_kernel(page, kind)}")
    user, folder, _ = facts_in_the_kernel(page, kind)
    assert folder == f"/home/{student}/apex-class/notebooks"
    assert user == (student if IS_ROOT else "jovyan")


# --- an assignment --------------------------------------------------------------------

READ = """(path) => window.jupyterapp.serviceManager.contents.get(path)
  .then((file) => file.content)"""
SAVE = """([path, content]) => window.jupyterapp.serviceManager.contents.save(
  path, { type: "notebook", format: "json", content }).then(() => true)"""
# Ben's mistakes: the task, the right words, his, the mistake's name in the rubric.
BENS = (("axial-tables", "zip(by_row, by_column)", "zip(by_column, by_row)",
         "axes-swapped"),
        ("move-keys", "step = new_positions - old_positions",
         "step = (new_positions - old_positions).abs()", "size-of-the-step"))

# What a student may do to the exchange by hand. nbgrader's own collecting would follow
# the link, stop at the third, or take the last for Anna's newest work.
TRICKS = (
    "ln -s /home/teacher/class/student/rope 'inbound/eve+rope+2026-01-01 00:00:00 UTC'",
    "mkdir 'inbound/eve+rope+yesterday'",
    "mkdir 'inbound/ben+rope+2098-01-01 00:00:00 UTC+x';"
    " chmod 0 'inbound/ben+rope+2098-01-01 00:00:00 UTC+x'",
    "cp -r outbound/rope 'inbound/anna+rope+2099-01-01 00:00:00 UTC+x'",
)


def fetch(page):
    """Fetch the assignment as nbgrader's menu offers it."""
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    page.get_by_role("button", name="Fetch", exact=True).click()
    page.get_by_role("button", name="Submit", exact=True).wait_for()


def submit(page):
    """Hand it in, and wait until the list names the time."""
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_text(re.compile(r"^\s*\d{4}-\d\d-\d\d .* UTC\s*$")).wait_for()


def answers_of(student, copies):
    """The text of each cell that a student writes."""
    solution = nbformat.read(copies["solution"], as_version=4)
    texts = {cell.metadata.nbgrader.grade_id: cell.source for cell in solution.cells
             if cell.metadata.get("nbgrader", {}).get("solution")}
    for task, right, wrong, _ in BENS if student == "ben" else ():
        assert texts[task].count(right) == 1
        texts[task] = texts[task].replace(right, wrong)
    return texts


@pytest.fixture(scope="module")
def handed_in(tabs, machine, copies):
    """Both fetch the assignment, write their answers, and hand in; Eve plays tricks."""
    for student, page in tabs.items():
        fetch(page)
        notebook = page.evaluate(READ, "rope/rope.ipynb")
        answers = answers_of(student, copies)
        for cell in notebook["cells"]:
            label = cell["metadata"].get("nbgrader", {}).get("grade_id")
            cell["source"] = answers.pop(label, cell["source"])
        assert answers == {}
        assert page.evaluate(SAVE, ["rope/rope.ipynb", notebook])
        submit(page)
    for trick in TRICKS if IS_ROOT else ():
        done = machine.run("eve", ["sh", "-ec", trick], "/srv/nbgrader/exchange/apex")
        assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def results(handed_in, machine, tmp_path_factory):
    """student -> the result, once the teacher has collected and graded."""
    teacher(machine, "collect", "rope")
    submitted = machine.make("home", "teacher", "class", "submitted")
    out = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "apex_lessons", "grade", "rope", str(submitted),
               "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in (out / "results").iterdir()}


def test_both_are_graded_and_nobody_else(results):
    tricked = ["eve"] if IS_ROOT else []
    assert sorted(results) == sorted([*STUDENTS, *tricked])
    assert {one["status"] for one in results.values()} == {"graded"}


def test_who_hands_in_for_others_hands_in_for_herself(results):
    """Where all have one account nothing tells them apart: it is not tried there."""
    assert [one["points"] for name, one in results.items()
            if name not in STUDENTS] == ([0] if IS_ROOT else [])


def test_the_right_answers_have_all_points(results):
    assert results["anna"]["points"] == results["anna"]["out_of"] > 0


def test_the_wrong_ones_have_what_the_rubric_says(results):
    tasks = {task.name: task for task in load_assignment(ROPE).tasks}
    lost = 0
    for name, _, _, mistake in BENS:
        (wrong,) = [w for w in tasks[name].wrong_answers if w.name == mistake]
        lost += tasks[name].points - wrong.earns
        (judged,) = [t for t in results["ben"]["tasks"] if t["name"] == name]
        assert judged["mistake"] == mistake and judged["points"] == wrong.earns
    assert results["ben"]["points"] == results["ben"]["out_of"] - lost


# --- what students can see ------------------------------------------------------------

def read_all(folder):
    return {path: path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink()}


def test_nothing_hidden_reaches_students(handed_in, machine):
    """No line of a hidden half is in their homes or the class's own repository."""
    hidden = [folder / HIDDEN for folder in assignment_folders(ROPE.parent)]
    secrets = [line.encode() for path in hidden for line in re.findall(
        r"^def _\w+\(.*\):$", path.read_text(encoding="utf-8"), re.MULTILINE)]
    assert len(secrets) > 50
    theirs = read_all(machine.make("srv", "apex"))
    for student in STUDENTS:
        theirs |= read_all(machine.make("home", student))
    assert [path for path, data in theirs.items() if path.name == HIDDEN
            or any(secret in data for secret in secrets)] == []


def test_the_class_repository_holds_the_students_copies(machine, copies):
    given = machine.make("srv", "apex", "assignments")
    rope = given / "rope" / "rope.ipynb"
    assert rope.read_bytes() == copies["student"].read_bytes()
    assert sorted(path.name for path in given.rglob("*.*")) == sorted(
        f"{folder.name}.ipynb" for folder in assignment_folders(ROPE.parent))


def test_students_cannot_look_at_each_others_work(handed_in, machine):
    """With accounts of their own; with one for all, the guide says so, they can."""
    looks = (["ls", "/srv/nbgrader/exchange/apex/inbound"], ["ls", "/home/ben"],
             ["ls", "/home/teacher/class"])
    done = [machine.run("anna", look).returncode == 0 for look in looks]
    assert done == [not IS_ROOT] * 3
