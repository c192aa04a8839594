"""The house itself: file names, encodings, dependencies, documents, commands."""

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from rattler import MatchSpec

import apex_lessons
from apex_lessons.grading import sandbox
from notebooks.machine import browser, build, install, lock

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
EXTRAS = PROJECT["optional-dependencies"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TEXT = {".py", ".md", ".toml", ".yml", ".cff", ".js", ".css", ".json", ".csv", ".ipynb",
        ".lock", ".txt", ""}


def files_of_git(*patterns):
    """Tracked files and new ones that git does not ignore, as they stand now."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard", *patterns],
                            cwd=ROOT, check=True, capture_output=True,
                            encoding="utf-8").stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


FILES = files_of_git()
PROGRAMS = [name for name in FILES if name.endswith(".py")]
TEXTS = [name for name in FILES if Path(name).suffix in TEXT]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# --- files ----------------------------------------------------------------------------

RESERVED = {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)),
            *(f"lpt{n}" for n in range(1, 10))}


def illegal_on_windows(name):
    """Why Windows could not check a file out; None when it can."""
    if not re.fullmatch(r"[A-Za-z0-9._/-]+", name):
        return "a character other than letters, digits, dot, dash and underscore"
    if len(name) >= 120:
        return "120 characters or more"
    for part in name.split("/"):
        if part.endswith(".") or part.split(".")[0].lower() in RESERVED:
            return f"the part {part!r}"
    return None


def test_file_names_are_legal_on_every_system():
    """ENV-09: no colon, reserved word, trailing dot, long path or twin in capitals."""
    assert {name: why for name in FILES if (why := illegal_on_windows(name))} == {}
    assert len({name.lower() for name in FILES}) == len(FILES)


@pytest.mark.parametrize("name",
                         ["a:b.py", "x/aux.py", "folder./x", "é.py", "n" * 121, "a b"])
def test_an_illegal_file_name_is_noticed(name):
    assert illegal_on_windows(name)


def test_every_text_is_utf_8_without_carriage_returns():
    spoilt = [name for name in TEXTS if b"\r\n" in (ROOT / name).read_bytes()]
    assert spoilt == []
    for name in TEXTS:
        text_of(name)


OPENERS = {"open", "read_text", "write_text", "fdopen", "NamedTemporaryFile",
           "TemporaryFile"}


def calls_without_encoding(source):
    """Line numbers of calls that read or write text in the system's own encoding."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if in_the_systems_encoding(call)]


def in_the_systems_encoding(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = {keyword.arg for keyword in call.keywords}
    if "encoding" in given or None in given or ast.unparse(call.func) == "os.open":
        return False
    if name in ("run", "Popen", "check_output"):
        return bool({"text", "universal_newlines"} & given)
    modes = [a.value for a in (*call.args, *(k.value for k in call.keywords))
             if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    binary = any(re.fullmatch(r"[rwax+]*b[rwax+]*", mode) for mode in modes)
    binary |= name.endswith("TemporaryFile") and "mode" not in given
    return name in OPENERS and not binary


def test_text_is_opened_with_its_encoding():
    """ENV-06: θ, γ and √ are everywhere; Windows reads cp1252 where nothing is said."""
    silent = {name: lines for name in PROGRAMS
              if (lines := calls_without_encoding(text_of(name)))}
    assert silent == {}


@pytest.mark.parametrize("source", ["open('x')", "open('x', 'w')", "path.read_text()",
                                    "Path('x').open()", "run(['x'], text=True)",
                                    "NamedTemporaryFile(mode='w')"])
def test_a_call_without_encoding_is_noticed(source):
    assert calls_without_encoding(source) == [1]


@pytest.mark.parametrize("source", ["open('x', 'rb')", "open('x', encoding='utf-8')",
                                    "path.read_bytes()", "NamedTemporaryFile()",
                                    "run(['x'], encoding='utf-8')"])
def test_a_call_with_encoding_is_fine(source):
    assert calls_without_encoding(source) == []


def test_the_pages_are_read_in_any_locale():
    """ENV-06: a page and its source are read where the locale knows ASCII only."""
    page = build.page_of(build.page_sources()[0])
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
             "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, str(build.FOLDER / "machine" / "lint.py"),
                           str(page)],
                          env=os.environ | plain, capture_output=True, encoding="utf-8")
    assert done.stdout.endswith("1 pages, 0 problems\n"), done.stdout + done.stderr


def test_no_place_to_download_from_is_written_down():
    """A reader's own settings decide where packages come from."""
    hosts = ["pypi" + ".org", "python" + "hosted", "download." + "pytorch",
             "registry." + "npmjs", "deb." + "debian", "anaconda" + ".org",
             "hugging" + "face.co/", "index" + "-url http"]
    named = [(name, host) for name in TEXTS for host in hosts if host in text_of(name)]
    assert named == []


def test_no_path_of_one_machine_is_written_down():
    paths = ["/" + folder + "/" for folder in ("tmp", "work", "root", "farm")]
    named = [(name, path) for name in TEXTS if not name.endswith(".lock")
             for path in paths
             if re.search(r"(?<![\w.)\]}])" + path, text_of(name))]
    assert named == []


WIDTH = 88


def too_wide(name):
    """Numbers of the lines that are wider than the house's column.

    In the source of a page a table's row and a cell's tags are one line each.
    """
    page = name.startswith(("notebooks/", "assignments/"))
    one_line = ("# |", "# %%") if page else ()
    return [number for number, line in enumerate(text_of(name).splitlines(), 1)
            if len(line) > WIDTH and not line.startswith(one_line)]


def test_no_line_of_a_program_is_too_wide():
    assert {name: lines for name in PROGRAMS if (lines := too_wide(name))} == {}


LONGEST = 25


def long_functions(source):
    """Functions with more lines than fit on a screen, docstrings not counted."""
    functions = [node for node in ast.walk(ast.parse(source))
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [one.name for one in functions if lines_of(one) > LONGEST]


def lines_of(function):
    first = function.body[0]
    words = ast.get_docstring(function) is not None
    docstring = first.end_lineno - first.lineno + 1 if words else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_functions_fit_on_a_screen():
    package = [name for name in PROGRAMS if name.startswith("apex_lessons/")]
    found = {name: long for name in package if (long := long_functions(text_of(name)))}
    assert found == {}


def test_a_wide_line_and_a_long_function_are_noticed(monkeypatch):
    texts = {"a.py": "x" * 89 + "\n" + "y" * 88, "notebooks/01.py": "# | " + "x" * 99}
    monkeypatch.setitem(globals(), "text_of", texts.get)
    assert too_wide("a.py") == [1] and too_wide("notebooks/01.py") == []
    body = "\n".join("    x = 1" for _ in range(24))
    assert long_functions(f'def f():\n    """Words.\n\n    More."""\n{body}\n') == []
    assert long_functions(f"def f():\n    y = 1\n{body}\n") == ["f"]


def test_no_test_is_skipped_or_excused():
    excuse = re.compile(r"pytest\.(?:skip|mark\.(?:skip|xfail))|import"
                        + r"orskip|except:\s*$"
                        r"|except Exception:\s*pass", re.MULTILINE)
    excused = [name for name in PROGRAMS if excuse.search(text_of(name).replace(
        "pytest\\.", "").replace(r"except Exception:\s*pass", ""))]
    assert excused == []


def test_nothing_is_installed_from_a_page():
    """ENV-04: ``!pip`` installs into another Python than the one that runs the page."""
    pages = [name for name in FILES
             if name.startswith("notebooks/") and "/machine/" not in name]
    shell = re.compile(r"^\s*\"?(?:# )?[!%]\s*(?:pip|conda)\b", re.MULTILINE)
    assert [name for name in pages if shell.search(text_of(name))] == []


# --- dependencies ---------------------------------------------------------------------

def locked():
    """name -> [(version, marker)] of the lock file."""
    pins = {}
    for line in text_of("requirements.lock").splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            pin = Requirement(line.removesuffix("\\").strip())
            (exact,) = pin.specifier
            assert exact.operator == "=="
            versions = pins.setdefault(pin.name.lower(), [])
            versions.append((Version(exact.version), pin.marker))
    return pins


MACHINES = [{"sys_platform": system, "platform_machine": machine, "os_name": family,
             "platform_system": name, "python_version": python,
             "python_full_version": f"{python}.2", "implementation_name": "cpython",
             "platform_python_implementation": "CPython"}
            for system, machine, family, name, pythons in (
                ("linux", "x86_64", "posix", "Linux", ("3.11", "3.12", "3.13", "3.14")),
                ("linux", "aarch64", "posix", "Linux", ("3.11", "3.14")),
                ("darwin", "arm64", "posix", "Darwin",
                 ("3.11", "3.12", "3.13", "3.14")),
                ("darwin", "x86_64", "posix", "Darwin", ("3.11", "3.12")),
                ("win32", "AMD64", "nt", "Windows", ("3.11", "3.12", "3.13", "3.14")))
            for python in pythons]


def pinned(pins, name, machine):
    return [version for version, marker in pins.get(name, [])
            if marker is None or marker.evaluate(machine)]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: "-".join(
    (m["sys_platform"], m["platform_machine"], m["python_version"])))
def test_the_lock_answers_every_requirement_on_every_machine(machine):
    """ENV-01, ENV-02: one version of each, numpy below 2 where torch is made for it."""
    pins = locked()
    for extra in lock.EXTRAS:
        for wanted in map(Requirement, EXTRAS[extra]):
            if wanted.marker is None or wanted.marker.evaluate(machine):
                (version,) = pinned(pins, wanted.name.lower(), machine)
                assert version in wanted.specifier, wanted
    assert all(len(pinned(pins, name, machine)) <= 1 for name in pins)
    intel_mac = {"sys_platform": "darwin", "platform_machine": "x86_64"}
    old_torch = intel_mac.items() <= machine.items()
    (numpy,) = pinned(pins, "numpy", machine)
    assert (numpy < Version("2")) == old_torch


def test_the_lock_has_hashes_and_no_torch():
    text = text_of("requirements.lock")
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 100 and all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"^(?:torch|triton|nvidia)\b", text, re.MULTILINE)
    assert not any(word in text for word in ("://", "--index-url", "--find-links"))


def test_the_torch_that_is_installed_is_in_the_range():
    (wanted,) = map(Requirement, PROJECT["dependencies"])
    assert wanted.name == "torch"
    for pin in (install.TORCH, install.TORCH_INTEL_MAC):
        assert Version(pin.partition("==")[2]) in wanted.specifier
    assert Version(importlib.metadata.version("torch")) in wanted.specifier


def test_the_conda_environment_agrees_with_the_one_list():
    """Every spec parses strictly, takes the same versions, and nothing is missing."""
    assert text_of("environment.yml") == lock.conda_environment()
    environment = yaml.safe_load(text_of("environment.yml"))
    assert environment["channels"] == ["conda-forge"]
    *from_conda, from_pip = environment["dependencies"]
    specs = [MatchSpec(spec, strict=True) for spec in from_conda]
    names = [spec.name.normalized for spec in specs]
    wanted = {one.name.replace("torch", "pytorch"): one
              for one in lock.reader_requirements()
              if one.name not in lock.NOT_ON_CONDA_FORGE}
    assert sorted(names) == sorted([*wanted, "python", "pip"])
    pins = locked()
    for spec in specs:
        name = spec.name.normalized
        if name in pins:
            (version,) = pinned(pins, name, MACHINES[0])
            assert version in wanted[name].specifier
            written = {part for part in str(spec.version).split(",")}
            assert written == {str(part) for part in wanted[name].specifier}, name
    assert [Requirement(line).name for line in from_pip["pip"][:-1]] == sorted(
        lock.NOT_ON_CONDA_FORGE)
    assert from_pip["pip"][-1] == "-e ."


def test_conda_takes_the_cpu_build_and_a_python_we_support():
    specs = yaml.safe_load(text_of("environment.yml"))["dependencies"]
    torch = MatchSpec(next(one for one in specs if str(one).startswith("pytorch")),
                      strict=True)
    assert str(torch.build) == "cpu_*" and str(torch.version) == ">=2.2"
    assert f"python={lock.CONDA_PYTHON}" in specs
    supported = Requirement(f"x{PROJECT['requires-python']}").specifier
    assert Version(lock.CONDA_PYTHON) in supported


IMPORT_NAMES = {"IPython": "ipython", "PIL": "pillow", "yaml": "pyyaml",
                "rattler": "py-rattler", "fontTools": "fonttools",
                "axe_playwright_python": "axe-playwright-python"}
# Their own requirements bring these along.
BROUGHT_ALONG = {"ipython": "ipykernel", "traitlets": "ipywidgets",
                 "pillow": "matplotlib", "fonttools": "matplotlib",
                 "docutils": "sphinx"}


def third_party_imports(names):
    found = {}
    for name in names:
        for node in ast.walk(ast.parse(text_of(name))):
            modules = ([alias.name for alias in node.names]
                       if isinstance(node, ast.Import)
                       else [node.module] if isinstance(node, ast.ImportFrom)
                       and node.module and node.level == 0 else [])
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names:
                    package = IMPORT_NAMES.get(top, top.replace("_", "-"))
                    found.setdefault(BROUGHT_ALONG.get(package, package), name)
    return found


OURS = {"apex-lessons", "tests", "notebooks", "browser", "bubblewrap", "build",
        "install"}


@pytest.mark.parametrize(("start", "extras"), [
    ("apex_lessons/", ["course", "classroom"]), ("notebooks/0", ["course"]),
    ("notebooks/machine/b", [
        "course", "test"]), ("tests/bench/", ["bench"]),
    ("notebooks/machine/site/", ["course", "test", "site"]),
    ("tests/", ["course", "test", "bench", "classroom"])])
def test_what_is_imported_is_declared(start, extras):
    declared = {Requirement(one).name for extra in extras
                for one in EXTRAS[extra]} | {"torch"}
    used = third_party_imports(name for name in PROGRAMS if name.startswith(start))
    assert {name: where for name, where in used.items()
            if name not in declared | OURS} == {}


# --- the package ----------------------------------------------------------------------

def in_a_new_python(script):
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True,
                          encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_works_without_torchs_own_rms_norm():
    """ENV-08: torch 2.2, the newest on Macs with an Intel processor, has none."""
    script = """
import importlib, pkgutil, torch
del torch.nn.RMSNorm
del torch.nn.functional.rms_norm
import apex_lessons
for found in pkgutil.walk_packages(apex_lessons.__path__, "apex_lessons."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(apex_lessons.norm.rms_norm(torch.ones(2, 4)).sum().item())
"""
    assert abs(float(in_a_new_python(script)) - 8) < 1e-4


# --- documents and commands -----------------------------------------------------------

def test_the_readme_lists_the_pages_that_there_are():
    listed = re.findall(r"^\| \[[^\]]+\]\(notebooks/([^)]+)\)", README, re.MULTILINE)
    assert listed == [build.page_of(source).name for source in build.page_sources()]


def minutes_on_page(name):
    text = text_of(f"notebooks/{name}".replace(".ipynb", ".py"))
    return re.search(r"\*\*Time\.?\*\*\.? (\d+) minutes", text).group(1)


def test_the_readme_gives_each_pages_minutes():
    rows = re.findall(r"^\| \[[^\]]+\]\(notebooks/([^)]+)\) \|.*\| (\d+) \|$", README,
                      re.MULTILINE)
    assert rows and [(name, minutes_on_page(name)) for name, _ in rows] == rows


def test_the_readmes_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_the_readmes_commands_are_there():
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", README, re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert {"lab", "test", "notebooks", "reset"} <= named <= targets
    programs = re.findall(r"notebooks\\machine\\(\w+\.py)", README)
    assert programs and all((build.FOLDER / "machine" / name).exists()
                            for name in programs)


def test_make_help_lists_every_command():
    targets = re.findall(r"^([a-z-]+):(.*)$", MAKEFILE, re.MULTILINE)
    assert [name for name, rest in targets if "## " not in rest] == []
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True,
                          encoding="utf-8")
    assert all(f"make {name} " in done.stdout for name, _ in targets)


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["version"] == apex_lessons.__version__
    assert citation["license"] == PROJECT["license"] == "MIT"
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert text_of("LICENSE").startswith("MIT License")


def test_the_readme_names_the_versions_that_hold():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest == ".".join(map(str, install.OLDEST_PYTHON)) == "3.11"
    assert f"Python {oldest} to 3.14" in README
    assert "(3, 11) <= sys.version_info[:2] <= (3, 14)" in MAKEFILE
    assert install.TORCH.replace("==", " ") in README
    assert install.TORCH_INTEL_MAC.replace("==", " ") in README
    (wordllama,) = [one for one in EXTRAS["course"] if one.startswith("wordllama")]
    assert wordllama in README


def test_ci_runs_the_whole_suite():
    script = text_of(".ci/run")
    subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT, check=True)
    assert "exec make test" in script
    assert "BROWSER=" not in script and "unset BROWSER" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.fixture
def other_pythons(tmp_path):
    """A folder of programs that are on the path instead of the real Pythons."""
    def make(**versions):
        for name, version in versions.items():
            new_enough = 0 if version >= (3, 11) else 1
            number = ".".join(map(str, version))
            program = tmp_path / name.replace("_", ".")
            program.write_text(
                "#!/bin/sh\n"
                f'[ "$1" = --version ] && echo Python {number} && exit 0\n'
                f'[ "$1" = -c ] && exit {new_enough}\n'
                f'echo "$0 runs $*, bytecode ${{PYTHONDONTWRITEBYTECODE:-kept}}"\n',
                encoding="utf-8")
            program.chmod(0o755)
        for tool in ("make", "sh", "sed", "awk", "env", "echo", "test"):
            real = subprocess.run(["which", tool], capture_output=True,
                                  encoding="utf-8").stdout
            if real.strip():
                (tmp_path / tool).symlink_to(real.strip())
        return {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    return make


def make_install(environment, *words):
    return subprocess.run(["make", "install", *words], cwd=ROOT, env=environment,
                          capture_output=True, encoding="utf-8")


def test_make_takes_the_first_python_that_is_new_enough(other_pythons):
    done = make_install(other_pythons(python3=(3, 9, 2), python3_12=(3, 12, 1)))
    assert done.returncode == 0, done.stderr
    assert "python3.12 runs notebooks/machine/install.py" in done.stdout


def test_make_has_python_keep_what_it_compiled(other_pythons):
    """Else each of the many processes compiles torch anew: twice the time."""
    environment = other_pythons(python3=(3, 12, 2)) | {"PYTHONDONTWRITEBYTECODE": "1"}
    assert "bytecode kept" in make_install(environment).stdout


def test_make_says_that_no_python_is_new_enough(other_pythons):
    done = make_install(other_pythons(python3=(3, 9, 2)))
    assert done.returncode != 0
    assert "Python 3.9.2" in done.stderr and "3.11" in done.stderr
    assert "make lab PYTHON=" in done.stderr


def test_make_says_that_a_named_python_does_not_start(other_pythons):
    done = make_install(other_pythons(python3=(3, 12, 2)), "PYTHON=python3.77")
    assert done.returncode != 0 and "PYTHON=python3.77 does not start" in done.stderr


def test_a_browser_is_there_unless_it_is_left_out():
    """`make test` found or installed one; without one the browser tests did not run."""
    assert os.environ.get("BROWSER") == "skip" or browser.find(), (
        "no Chromium: the browser tests did not run (BROWSER=skip leaves them out)")


def test_a_sandbox_is_there_unless_it_is_left_out():
    """`make test` found or installed one; without one the grading tests did not run."""
    assert (sys.platform != "linux" or os.environ.get("SANDBOX") == "skip"
            or sandbox.find_mode() in ("root", "user"))


def test_versions_are_printed_on_a_page():
    """ENV-05: who reports another number can say with which versions."""
    first = json.loads(text_of("notebooks/00-start-here.ipynb"))["cells"]
    printed = "".join("".join(output.get("text", "")) + "".join(
        output.get("data", {}).get("text/plain", "")) for cell in first
        if build.MACHINE in cell["metadata"].get("tags", [])
                      for output in cell["outputs"])
    assert "torch" in printed.lower() and "python" in printed.lower()
