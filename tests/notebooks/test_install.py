"""The environment's installer without a network: what it keeps, and what it says."""

import builtins
import json
import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import pytest

from notebooks.machine import install


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A project folder of its own, whose installers do nothing."""
    root = tmp_path / "a folder, with spaces"
    root.mkdir()
    for name, place in {"ROOT": root, "VENV": root / ".venv",
                        "LOCK": root / "requirements.lock",
                        "STATE": root / ".venv" / "apex-lessons.json",
                        "BUSY": root / ".venv-in-use"}.items():
        monkeypatch.setattr(install, name, place)
    install.LOCK.write_text("uv==1 \\\n    --hash=sha256:00\nnumpy==2\n",
                            encoding="utf-8")
    for name in ("TORCH", "PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(install, "interpreter_works", lambda: True)
    monkeypatch.setattr(install, "add_the_course", lambda: None)
    monkeypatch.setattr(install, "check_space", lambda: None)
    return root


@pytest.fixture
def steps(home, monkeypatch):
    """What would have been run, in order; ``steps.failing`` makes a step fail."""
    record = SimpleNamespace(done=[], failing=None)

    def run_step(what, command, live=False):
        if record.failing and record.failing in what:
            raise install.explain_failure(what, "Connection refused")
        record.done.append(what)

    monkeypatch.setattr(install, "run_step", run_step)
    return record


ALL = ["Making the virtual environment", f"Installing {install.default_torch()}",
       "Installing uv",
       "Installing the packages"]


def test_everything_once_then_nothing(steps):
    assert install.main() == 0 and steps.done == ALL
    assert install.main() == 0 and steps.done == ALL


def test_a_new_lock_renews_the_packages_and_keeps_torch(steps):
    install.main()
    install.LOCK.write_text("uv==1\nnumpy==3\n", encoding="utf-8")
    assert install.main() == 0 and steps.done == ALL + ALL[2:]


def test_another_torch_is_chosen_once_and_remembered(steps, monkeypatch):
    install.main()
    monkeypatch.setenv("TORCH", 'torch==2.13.0 --index-url "the address of a build"')
    assert install.main() == 0 and steps.done == ALL + ALL
    assert install.read_state()["torch"] == ["torch==2.13.0", "--index-url",
                                             "the address of a build"]
    monkeypatch.delenv("TORCH")
    assert install.main() == 0 and steps.done == ALL + ALL


def test_a_new_default_torch_replaces_an_old_choice(steps, monkeypatch):
    install.main()
    monkeypatch.setattr(install, "TORCH", "torch==2.14.0")
    assert install.main() == 0
    assert "Installing torch==2.14.0" in steps.done


def test_another_python_or_place_makes_a_new_environment(steps, monkeypatch):
    install.main()
    state = json.loads(install.STATE.read_text(encoding="utf-8"))
    install.write_state(python=[3, 10])
    assert install.main() == 0 and len(steps.done) == 4  # nobody asked for another
    monkeypatch.setenv("PYTHON", "python3.11")
    install.write_state(python=[3, 10])
    assert install.main() == 0 and len(steps.done) == 8
    install.write_state(**state | {"place": "elsewhere"})  # the folder was moved
    assert install.main() == 0 and len(steps.done) == 12


def test_a_python_that_is_gone_makes_a_new_environment(steps, monkeypatch):
    install.main()
    monkeypatch.setattr(install, "interpreter_works", lambda: False)
    assert install.main() == 0 and len(steps.done) == 8


@pytest.mark.parametrize("failing", ALL)
def test_after_a_failure_the_next_call_finishes(steps, failing, capsys):
    steps.failing = failing
    assert install.main() == 1
    assert "internet" in capsys.readouterr().err
    steps.failing = None
    assert install.main() == 0
    assert steps.done[-1] == ALL[-1]
    assert install.read_state()["lock"] == install.lock_digest()


def test_an_interrupted_install_says_so(steps, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt
    monkeypatch.setattr(install, "install_packages", interrupted)
    assert install.main() == 130
    assert "goes on from here" in capsys.readouterr().err
    assert "lock" not in install.read_state()


def test_a_foreign_venv_is_left_alone(steps, capsys):
    install.VENV.mkdir()
    (install.VENV / "pyvenv.cfg").write_text("home = elsewhere", encoding="utf-8")
    assert install.main() == 1
    assert "did not make" in capsys.readouterr().err
    assert (install.VENV / "pyvenv.cfg").exists() and not steps.done


def test_an_old_python_is_named(steps, monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 1))
    assert install.main() == 1
    said = capsys.readouterr().err
    assert "3.11 or newer" in said and "PYTHON=" in said and not steps.done


def test_the_program_starts_on_an_old_python_far_enough_to_say_so():
    """No syntax newer than Python 3.7, so that the message is what an old one shows."""
    import ast
    from pathlib import Path
    ast.parse(Path(install.__file__).read_text(encoding="utf-8"),
              feature_version=(3, 7))


def test_a_missing_venv_module_is_named(steps, monkeypatch, capsys):
    real = builtins.__import__

    def without(name, *rest):
        if name == "ensurepip":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert install.main() == 1
    assert "-venv" in capsys.readouterr().err and not steps.done


def test_an_intel_mac_gets_its_last_torch_and_a_python_for_it(steps, monkeypatch,
                                                              capsys):
    """ENV-01, ENV-08: no newer torch is made for these machines."""
    monkeypatch.setattr(install.sys, "platform", "darwin")
    monkeypatch.setattr(install.platform, "machine", lambda: "x86_64")
    assert install.default_torch() == "torch==2.2.2"
    monkeypatch.setattr(install.sys, "version_info", (3, 13, 0))
    assert install.main() == 1
    assert "PYTHON=python3.12" in capsys.readouterr().err


def test_a_full_disk_is_named_before_anything_is_touched(home, monkeypatch, capsys):
    monkeypatch.undo()
    monkeypatch.setattr(install.shutil, "disk_usage",
                        lambda _: SimpleNamespace(free=3e8))
    with pytest.raises(install.Trouble, match="0.3 GB free.*2.5 GB"):
        install.check_space()


@pytest.mark.parametrize(("output", "word"), [
    ("OSError: [Errno 28] No space left on device", "disk is full"),
    ("ERROR: Could not find a version that satisfies torch (from versions: none)",
     "internet"),
    ("Failed to establish a new connection: [Errno -3] Temporary failure in name"
     " resolution",
     "internet"),
    ("error: Failed to fetch: `x`\n  Caused by: dns error", "internet"),
    ("ERROR: No matching distribution found for torch==9 (from versions: 2.1)",
     "PYTHON="),
    ("Segmentation fault", "own words"),
])
def test_a_failure_is_explained(home, output, word):
    assert word in str(install.explain_failure("Installing torch", output))


def test_an_installers_words_are_shown_when_it_fails(home, capsys):
    with pytest.raises(install.Trouble, match="disk is full"):
        install.run_step("A step", [sys.executable, "-c",
                                    "print('No space left on device');"
                                    " raise SystemExit(1)"])
    assert "    No space left on device" in capsys.readouterr().out
    install.run_step("A step", [sys.executable, "-c", "print('all is well')"])
    assert capsys.readouterr().out == ""


def test_what_the_shell_has_set_does_not_lead_astray(monkeypatch):
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_REQUIRE_VIRTUALENV",
                 "UV_SYSTEM_PYTHON", "CONDA_PREFIX"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "a mirror")
    clean = install.clean_environment()
    assert "elsewhere" not in clean.values() and clean["PIP_USER"] == "0"
    assert clean["UV_DEFAULT_INDEX"] == "a mirror"


WAITER = """
import sys
sys.path.insert(0, {folder!r})
import install
from pathlib import Path
install.BUSY = Path({busy!r})
with install.alone():
    print("in", flush=True)
    sys.stdin.readline()
"""


def test_two_calls_at_once_take_turns(home):
    """A second `make` waits for the first, says so, and then goes on."""
    script = textwrap.dedent(WAITER).format(folder=os.path.dirname(install.__file__),
                                            busy=str(install.BUSY))
    start = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    first = subprocess.Popen([sys.executable, "-c", script], **start)
    assert first.stdout.readline() == "in\n"
    second = subprocess.Popen([sys.executable, "-c", script], **start)
    assert "waiting" in second.stdout.readline()
    time.sleep(0.7)
    assert second.poll() is None
    first.communicate("\n", timeout=30)
    assert second.stdout.readline() == "in\n"
    second.communicate("\n", timeout=30)
    assert second.returncode == 0


def test_uv_is_installed_from_its_own_lines_of_the_lock(home):
    assert install.uv_requirement() == "uv==1 \\\n    --hash=sha256:00\n"
