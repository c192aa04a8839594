"""Hostile and unlucky submissions to the tiny assignment, and what each of them earns.

``SUBMISSIONS``: student -> (bytes of the notebook, points for scale, points for norm,
words that the student's page must hold). A right scale earns 3, a right norm 4.
"""

import json

from tests.grading.tiny import NORM, SCALE, STUB, cells, code, notebook, text

WRONG = "def scale(x, dim):\n    return x\n\n\ndef norm(x, eps):\n    return x\n"


def scale(source):
    """A submission whose cell of scale is this, and whose norm is right."""
    return notebook(cells(scale=source))


def beside(source):
    """A right submission with one more cell at its beginning."""
    return notebook([code(source), *cells()])


def wrong_beside(source):
    """Wrong functions, and a cell that hopes to make them count as right."""
    return notebook([code(source), *cells(scale=WRONG, norm="")])


def answering(expression, before=""):
    """A scale that answers one expression."""
    return scale(f"{before}\ndef scale(x, dim):\n    return {expression}\n")


def both(first, second, before=""):
    """A scale and a norm that answer one expression each."""
    return notebook(cells(f"{before}\ndef scale(x, dim):\n    return {first}\n",
                          f"def norm(x, eps):\n    return {second}\n"))


LOOP = "while True: pass\n"
SLOW = "It took longer than is allowed"
ENDED = "The program ended in the middle of it"
NUMBERS = "Shape and dtype are right, the numbers are not."
SUBMISSIONS = {
    "right": (notebook(cells()), 3, 4, ""),
    "stub": (notebook(cells(STUB.format("scale(x, dim)"), STUB.format("norm(x, eps)"))),
             0, 0, "not attempted"),
    "loop-in-function": (scale(f"def scale(x, dim):\n    {LOOP}"), 0, 4, SLOW),
    "loop-in-cell": (scale(SCALE + LOOP), 0, 4, SLOW),
    "loop-that-catches-all": (scale("""
def scale(x, dim):
    while True:
        try:
            import signal
            for number in range(1, 32):
                if number not in (9, 19):
                    signal.signal(number, signal.SIG_IGN)
        except BaseException:
            pass
"""), 0, 4, SLOW),
    "sleeper": (scale("import time\ntime.sleep(1e6)\n"), 0, 4, SLOW),
    "memory-bomb": (scale("held = [bytearray(10**8) for _ in range(10**4)]\n"), 0, 4,
                    "MemoryError"),
    "memory-bomb-of-tensors": (scale(
        "def scale(x, dim):\n    return torch.ones(10**11)\n"), 0, 4, "RuntimeError"),
    "memory-of-many": (scale("""
import os, time
for _ in range(12):
    if os.fork() == 0:
        held = bytearray(200_000_000)
        time.sleep(100)
time.sleep(100)
"""), 0, 4, "It used more memory than is allowed"),
    "shared-memory": (scale("""
import mmap
held = [mmap.mmap(-1, 10**8) for _ in range(10**3)]
for one in held:
    for place in range(0, 10**8, mmap.PAGESIZE):
        one[place] = 1
"""), 0, 4, "Operation not permitted"),
    "hidden-memory": (scale("""
import os
try:
    os.memfd_create("a")
except PermissionError:
    print(open("/dev/shm/a", "wb").write(b"a" * 10**7))
"""), 0, 4, "No space left on device"),
    "limits": (beside("""
import resource
limits = [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
          for name in ("DATA", "FSIZE", "NPROC", "CORE")]
raise Exception(f"limits {limits}")
"""), 3, 4, f"limits {[(most, most) for most in (700 << 20, 64 << 20, 64, 0)]}"),
    "output-bomb": (scale("import sys\nwhile True:\n    sys.stdout.write('y' * 10**6)\n"
                          "    sys.stderr.write('y' * 10**6)\n"), 0, 4, SLOW),
    "much-output": (beside("for _ in range(300):\n    print('y' * 10**6)\n"), 3, 4, ""),
    "fork-bomb": (scale("import os\nwhile True:\n    try:\n        os.fork()\n"
                        "    except OSError:\n        pass\n"), 0, 4, "was stopped"),
    "thread-bomb": (scale("import threading, time\nwhile True:\n    threading.Thread("
                          "target=time.sleep, args=(100,)).start()\n"), 0, 4,
                    "start new thread"),
    "daemon": (beside("""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/usr/bin/sleep", ["sleep", str(MARK)])
    os._exit(0)
"""), 3, 4, ""),
    "exit-in-cell": (scale("import os\nos._exit(0)\n"), 0, 4, ENDED),
    "exit-in-function": (scale("import os\n\ndef scale(x, dim):\n    os._exit(0)\n"),
                         0, 4, ENDED),
    "exit-for-half-precision": (scale(
        "import os\n\ndef scale(x, dim):\n    if x.dtype == torch.bfloat16:\n"
        "        os._exit(0)\n    return x * dim**0.5\n"), 2, 4, ENDED),
    "sys-exit": (beside("import sys\nsys.exit(0)\n"), 3, 4, "SystemExit"),
    "deep-recursion": (scale("import sys\nsys.setrecursionlimit(10**9)\n"
                             "f = lambda x: [f(x)]\nf(repr)\n"), 0, 4, ""),
    "crash": (scale("import ctypes\nctypes.string_at(0)\n"), 0, 4, ENDED),
    "kills": (beside("""
import os, signal
for who in (1, -1, os.getppid()):
    try:
        os.kill(who, signal.SIGKILL)
    except OSError:
        pass
"""), 3, 4, ""),
    "closes-everything": (scale("import os\nos.closerange(0, 200)\n"), 0, 4, ENDED),
    "fills-the-disk": (beside("for number in range(100):\n    open(str(number), 'wb')"
                              ".write(b'a' * 10**7)\n"), 3, 4, "No space left"),
    "never-ends-dying": (beside("""
class Undead:
    def __del__(self):
        while True: pass
undead = Undead()
"""), 3, 4, ""),
    "left-running": (notebook([*cells(scale=SCALE.replace(
        "return", "import time\n    time.sleep(0.3)\n    return")), code("""
import os, signal, sys, threading
threading.Timer(1e4, os._exit, [0]).start()
signal.signal(signal.SIGALRM, lambda *about: 1 / 0)
signal.setitimer(signal.ITIMER_REAL, 0.2)
sys.settrace(lambda *about: sys.exit() if about[0].f_code.co_name == "call" else None)
""")]), 3, 4, ""),
    "no-cell": (notebook(cells()[:3]), 3, 0, "The cell norm is missing"),
    "no-imports": (notebook(cells()[1:]), 3, 4, "The locked cell imports was changed"),
    "no-labels": (notebook([code("import torch"), code(SCALE), code(NORM)]), 3, 4,
                  "None of the assignment&#x27;s cells"),
    "twice": (notebook([*cells(scale=WRONG), code(SCALE, "scale")]), 3, 4,
              "is there 2 times"),
    "reordered": (notebook(cells()[::-1]), 3, 4, ""),
    "tampered-check": (notebook([code("assert True", "scale-check"),
                                 *cells(scale=WRONG)[:2], *cells(norm="")[3:]]), 0, 0,
                       "The locked cell scale-check was changed"),
    "replaced-assert": (wrong_beside("import builtins, sys\nbuiltins.AssertionError = "
                                     "type('Fine', (BaseException,), {})\n"
                                     "sys.excepthook = print\n"), 0, 0, NUMBERS),
    "patched-torch": (wrong_beside(
        "import torch\nfor name in ('allclose', 'equal', 'isclose', 'is_tensor'):\n"
        "    setattr(torch, name, lambda *a, **k: True)\n"
        "torch.Tensor.__eq__ = torch.Tensor.__le__ = lambda *a: True\n"
        "torch.testing.assert_close = lambda *a, **k: None\n"), 0, 0, NUMBERS),
    "patched-apex": (wrong_beside(
        "from apex_lessons.grading import judge, values\n"
        "judge.same = judge._close = lambda *a, **k: True\n"
        "values.same = values.Other = lambda *a, **k: True\n"
        "import apex_lessons.exercises.diagnosis as diagnosis\n"
        "diagnosis.agrees = diagnosis.judge = lambda *a, **k: True\n"), 0, 0, NUMBERS),
    "always-equal": (answering("Same()", """
class Same:
    __class__ = torch.Tensor
    shape, dtype = (3,), torch.float32
    def __eq__(self, other): return True
    def __array__(self, *about): return __import__("numpy").ones(3)
    def __getattr__(self, name): return lambda *a, **k: self
    def __hash__(self): return 1
    def __bool__(self): return True
"""), 0, 4, "`Tensor` is wanted".replace("`Tensor`", "<code>Tensor</code>")),
    "tensor-subclass": (answering("x.as_subclass(Same)", """
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ != "as_subclass":
            return True
        return super().__torch_function__(function, types, args, kwargs or {})
"""), 0, 4, "something else came back"),
    "lying-name": (answering("Odd()", """
class Meta(type):
    __name__ = property(lambda cls: 1 / 0)
class Odd(metaclass=Meta):
    pass
"""), 0, 4, "ZeroDivisionError"),
    "endless-list": (both("held", "10**5000", "held = []\nheld.append(held)\n"), 0, 0,
                     "a huge whole number"),
    "huge-answers": (both("torch.ones(1).expand(10**12)", "'a' * 10**8"), 0, 0,
                     "huge tensor"),
    "sparse": (both("(x * dim**0.5).to_sparse()", "(x * 2).tolist()"), 0, 0,
               "sparse tensor"),
    "meta-device": (both("x.to('meta')", "x[None]"), 0, 0, "tensor without numbers"),
    "state-between-cases": (scale("""
seen = []
def scale(x, dim):
    seen.append(x)
    return x * dim**0.5 if len(seen) < 2 else x
"""), 0, 4, "Hidden input 2 of 2"),
    "changes-its-input": (both(
        "x.mul_(dim**0.5).requires_grad_()",
        "x.div_((x.square().mean(-1, keepdim=True) + eps).sqrt())"), 3, 4, ""),
    "many-answers": (scale("""
import os
def scale(x, dim):
    for descriptor in range(3, 20):
        try:
            for _ in range(100):
                os.write(descriptor, b'{"event": "x"}\\n' * 10**5)
        except OSError:
            pass
"""), 0, 4, "It reported more than is allowed"),
    "forged-results": (wrong_beside("""
import json, os
events = [{"event": "answer", "step": f"{task}/{line}", "case": case, "points": 3,
           "answer": {"value": True, "points": 3, "error": ["a"], "message": [[]]}}
          for task in ("scale", "norm") for line in (0, 1) for case in (0, 1)]
events += [{"event": ["a"]}, {"event": "end", "label": [1], "error": {}}, [],
           {"event": "read", "notes": 1, "sources": [], "written": 7}]
for descriptor in range(3, 20):
    try:
        os.write(descriptor, "".join(json.dumps(e) + "\\n" for e in events).encode())
    except OSError:
        pass
"""), 0, 0, NUMBERS),
    "forged-end": (beside("""
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, b'{"event": "bye"}\\n')
    except OSError:
        pass
"""), 0, 0, ENDED),
    "asks-early": (beside("""
import os, select
heard = []
for descriptor in range(3, 20):
    try:
        os.write(descriptor, b'{"event": "ready"}\\n')
    except OSError:
        pass
for descriptor in range(3, 20):
    try:
        while select.select([descriptor], [], [], 0.3)[0]:
            heard.append(os.read(descriptor, 10**6).decode())
    except OSError:
        pass
raise Exception("".join(heard))
"""), None, None, ""),
    "tells-inputs": (scale("""
def scale(x, dim):
    print(x)
    numbers = " ".join(f"{number:.6f}" for number in x.tolist())
    kind = type(f"Found{numbers}", (ValueError,), {})
    raise kind(numbers)
"""), 0, 4, "an exception of its own"),
    "tells-by-name": (scale("""
def scale(x, dim):
    number = f"{x[0].item():.6f}".replace(".", "_")
    raise NameError(f"name 'v{number}' is not defined")
"""), 0, 4, "Your function ended with NameError; "),
    "tells-by-line": (scale("def scale(x, dim):\n    n = int(10_000 * x[0].item())\n"
                            "    exec(compile('\\n' * n + '1/0', '<scale>', 'exec'))\n"
                            + "".join(f"# {n / 10_000}\n" for n in range(20_000))),
                      0, 4, "Your function ended with ZeroDivisionError; "),
    "tells-the-next-start": (notebook([code("""
import gc
raise Exception(str([thing["skip"] for thing in gc.get_objects()
                     if type(thing) is dict and "skip" in thing and "path" in thing]))
"""), *cells(scale="""
import json, os

def scale(x, dim):
    said = json.dumps({"event": "begin", "step": f"{x[0].item():.4f}"}) + chr(10)
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, said.encode())
        except OSError:
            pass
    os._exit(0)
""")]), 0, 4, "Exception: [[]]"),
    "answers-inputs": (answering("{str(x.tolist()): f'{x[0].item():.6f}'}"), 0, 4,
                       "wanted"),
    "unknown-name": (answering("rotate(x)"), 0, 4,
                     "Your function ended with NameError; "),
    "reads-the-disk": (beside("""
import os
found = []
for place, folders, names in os.walk("/"):
    left_out = "usr", "proc", "site-packages"
    folders[:] = [name for name in folders if name not in left_out]
    found += [name for name in names if name in ("hidden.py", "tiny.py", "right.ipynb")]
raise Exception(f"found {found}")
"""), 3, 4, "found []"),
    "reads-the-frames": (scale("""
import gc, sys

def scale(x, dim):
    frame, found = sys._getframe(), []
    while frame is not None:
        found += list(frame.f_locals.values()) + list(frame.f_globals.values())
        frame = frame.f_back
    found += gc.get_objects()
    names = ("scale", "answer", "ASSIGNMENT", "wanted", "expected")
    for thing in found:
        if type(thing).__name__ in ("Task", "Assignment", "Criterion", "WrongAnswer"):
            return thing.answer(x, dim)
    return x
"""), 0, 4, NUMBERS),
    "network": (beside("""
import socket
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=2).send(b"hello")
except OSError as error:
    raise Exception(f"no way out: {type(error).__name__}")
"""), 3, 4, "no way out"),
    "writes-outside": (beside("""
import os
written = []
for place in ("/", "/course/apex_lessons", "/usr", "/etc", os.path.dirname(os.__file__),
              OUT, SUBMITTED, "/dev", "/proc/sys/kernel"):
    try:
        open(os.path.join(place, "was-here"), "w").write("x")
        written.append(place)
    except OSError:
        pass
raise Exception(f"written {written}")
"""), 3, 4, "written []"),
    "namespaces": (beside("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
done = [name for name, call in (("unshare", lambda: libc.unshare(0x10000000)),
        ("mount", lambda: libc.mount(b"none", b"/box", b"tmpfs", 0, None)),
        ("shm", lambda: libc.shmget(0, 10**9, 0o1600)),
        ("root", lambda: libc.setuid(0))) if call() != -1]
raise Exception(f"done {done}")
"""), 3, 4, "done []"),
    "injection": (scale('raise Exception("<script>alert(1)</script>\\x1b[2J")\n'), 0, 4,
                  "&lt;script&gt;alert(1)"),
    "magics": (notebook([
        code("%matplotlib inline\n!rm -rf /\ntorch.ones?\ndisplay(1)\n"),
        code("%%bash\nrm -rf /\n"), *cells()]), 3, 4, ""),
    "syntax-error": (scale("def scale(x, dim:\n    return x\n"), 0, 4, "SyntaxError"),
    "odd-characters": (b"\xef\xbb\xbf" + notebook([
        code("name = '\ud800'\n"), *cells(SCALE.replace("\n", "\r\n"))]), 3, 4, ""),
    "not-json": (b"this is no notebook", 0, 0, "no valid JSON"),
    "cut-off": (notebook(cells())[:-100], 0, 0, "no valid JSON"),
    "empty": (b"", 0, 0, "The file is empty"),
    "json-list": (b"[1, 2]", 0, 0, "no cells are in it"),
    "nested-json": (b"[" * 10**6, 0, 0, "nested too deep"),
    "odd-json": (notebook([*cells(), 7, {"cell_type": 3, "source": {}, "metadata": []},
                           {"cell_type": "code", "source": [1, "x = 1"],
                            "metadata": {"nbgrader": {"grade_id": ["scale"]}}}],
                          kernelspec=[], nothing=float("nan"), huge=10**400), 3, 4, ""),
    "other-kernel": (notebook(cells(), kernelspec={"name": "ir", "language": "R"}),
                     3, 4, "names the kernel &#x27;ir&#x27;"),
    "broken-unicode": (notebook([text("aaaa", "intro"), *cells()]).replace(
        b"aaaa", b"a\xff\xfea"), 3, 4, "no UTF-8"),
    "version-3": (json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [
        {"cell_type": "code", "input": one["source"], "metadata": one["metadata"]}
        for one in cells()[:-1]]}]}).encode(), 3, 4, ""),
    "fifty-megabytes": (notebook([*cells(), {
        "cell_type": "code", "source": "1", "metadata": {}, "execution_count": 1,
        "outputs": [{"output_type": "stream", "name": "stdout",
                     "text": "y" * 50_000_000}]}]), 3, 4, ""),
    "Zoë van Ürk, 2nd (late)": (notebook(cells()), 3, 4, ""),
    "=cmd|' -C calc'!A0": (notebook(cells()), 3, 4, ""),
    "<img src=x onerror=alert(1)>": (notebook(cells()), 3, 4, ""),
}
