"""The program inside the sandbox: runs a submission's cells, then its functions.

It is given the submission and the hidden inputs, the inputs only after all cells have
run; it knows no expected value. What it reports are events, one JSON object a line, on
the descriptor that was standard output. The submission shares its interpreter and may
forge any of them: an event is a claim, and all that is claimed is judged elsewhere.

Events: ``read`` (notes, sources), ``begin``/``end`` of a step, ``ready`` (waiting for
inputs), ``answer`` of one case, ``bye``. Input: frames, each 8 bytes of length and the
bytes: a job (JSON), the notebook, and after ``ready`` the inputs (JSON).
"""

import io
import json
import linecache
import os
import signal
import sys
import traceback

LONGEST_MESSAGE = 2000
MOST_TEXT = 1_000_000  # characters of all cells together that are reported


def limit_process(limits: dict, user: int) -> None:
    """Lower this process's limits for good; become ``user`` if it is not 0."""
    import resource  # not on Windows, where this file can be read but not run

    data = limits["memory"] << 20
    for what, most in ((resource.RLIMIT_DATA, data), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_CPU, limits["cpu"]),
                       (resource.RLIMIT_NOFILE, 128),
                       (resource.RLIMIT_FSIZE, limits["file"] << 20),
                       (resource.RLIMIT_NPROC, limits["processes"])):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def frame(stream: io.BufferedReader) -> bytes:
    """The next frame of the input."""
    return stream.read(int.from_bytes(stream.read(8), "big"))


class Channel:
    """Reports events; keeps its own hold on the functions that it needs."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.write, self.dumps = os.write, json.dumps

    def send(self, event: str, **content) -> None:
        line = self.dumps({"event": event} | content).encode("ascii") + b"\n"
        while line:
            line = line[self.write(self.descriptor, line):]


def silence(*descriptors: int) -> None:
    """What is printed goes nowhere, what is read is at its end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


# --- a submission's code -----------------------------------------------------------

def namespace_of_a_notebook() -> dict:
    """Where the cells run: a module of its own called ``__main__``."""
    import types

    module = types.ModuleType("__main__")
    module.display = lambda *things, **options: None
    sys.modules["__main__"] = module
    return module.__dict__


def run_step(label: str, source: str, namespace: dict) -> str:
    """Execute one cell; what went wrong, in words, or "" if all went well."""
    from apex_lessons.grading.notebook import python_of

    name = f"<{label}>"
    source = python_of(source)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        exec(compile(source, name, "exec", dont_inherit=True), namespace)
        calm()
    except BaseException as error:  # SystemExit and KeyboardInterrupt end a cell only
        return describe(error, name)
    return ""


def calm() -> None:
    """Take back what a cell may have left running in this thread."""
    sys.settrace(None)
    sys.setprofile(None)
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)


def describe(error: BaseException, name: str) -> str:
    """An exception with the submission's own lines, cut to a readable length."""
    lines = [f"{cell}, line {number}: {linecache.getline(f'<{cell}>', number).strip()}"
             for cell, number in own_lines(error)[-4:]]
    if isinstance(error, SyntaxError) and error.filename == name:
        lines.append(f"{name[1:-1]}, line {error.lineno}: {(error.text or '').strip()}")
    return "\n".join([*lines, f"{type(error).__name__}: {message_of(error)}"])[
        -LONGEST_MESSAGE:]


def message_of(error: BaseException) -> str:
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        return str(text)[:LONGEST_MESSAGE]
    except BaseException:  # a submission's own __str__ may raise anything
        return ""


def own_lines(error: BaseException) -> list[tuple[str, int]]:
    """(cell, line number) of the frames in a submission's cells, outermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith("<") and name in linecache.cache:
            found.append((name[1:-1], trace.tb_lineno))
        trace = trace.tb_next
    return found[-1000:]


def call(function, inputs: dict) -> dict:
    """The answer to one case as plain data: a value, or why there is none."""
    from apex_lessons.grading.values import encode

    try:
        value = function(**inputs)
        if value is None or value is Ellipsis or value is NotImplemented:
            return {"nothing": True}
        return {"value": encode(value)}
    except NotImplementedError:
        return {"nothing": True}
    except BaseException as error:
        where = own_lines(error)[-1:] or [("", 0)]
        return {"error": type(error).__name__, "message": message_of(error)[:500],
                "cell": where[0][0], "line": where[0][1]}


# --- the two halves ---------------------------------------------------------------

def run_cells(job: dict, data: bytes, channel: Channel) -> dict:
    """Read the notebook and execute its cells; returns their namespace."""
    from apex_lessons.grading import notebook

    found, notes = notebook.read_notebook(data)
    del data
    chosen, more = notebook.steps(found, job["cells"])
    channel.send("read", notes=notes + more, written=notebook.written_answers(
        found, job["cells"]), sources={
            step.label: step.source[:MOST_TEXT // len(chosen)] for step in chosen})
    namespace = namespace_of_a_notebook()
    for number, step in enumerate(chosen):
        if f"cell {number}" in job["skip"]:
            continue
        channel.send("begin", step=f"cell {number}", label=step.label)
        error = run_step(step.label, step.source, namespace)
        channel.send("end", step=f"cell {number}", label=step.label, error=error)
    return namespace


def prepared(criterion: dict, namespace: dict):
    """The submission's function after the task's setup; None where there is none."""
    own = dict(namespace)
    wrong = run_step("setup", criterion["setup"], own)
    function = own.get(criterion["function"])
    return function if callable(function) and not wrong else None


def run_cases(order: list[dict], namespace: dict, channel: Channel) -> None:
    """Call the functions on their hidden inputs, each time on a fresh copy."""
    import torch
    from apex_lessons.grading.values import decode

    for criterion in order:
        channel.send("begin", step=criterion["step"])
        function = prepared(criterion, namespace)
        for number, inputs in enumerate(criterion["cases"]):
            torch.manual_seed(number)
            answer = {"undefined": True} if function is None else call(
                function, {name: decode(value) for name, value in inputs.items()})
            channel.send("answer", step=criterion["step"], case=number, answer=answer)
        channel.send("end", step=criterion["step"])


def main() -> None:
    """Run one submission as the frames on standard input say."""
    stream, channel = os.fdopen(os.dup(0), "rb"), Channel(os.dup(1))
    silence(0, 1)
    job = json.loads(frame(stream))
    limit_process(job["limits"], job["user"])
    sys.path += job["path"]
    import torch

    from apex_lessons.grading.notebook import Unreadable

    torch.set_num_threads(1)
    channel.send("started")
    silence(2)
    try:
        namespace = run_cells(job, frame(stream), channel)
    except MemoryError:
        return channel.send("unreadable", why="The file is too large to be read.")
    except Unreadable as error:
        return channel.send("unreadable", why=str(error))
    channel.send("ready")
    run_cases(json.loads(frame(stream)), namespace, channel)
    channel.send("bye")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # at once: no exit handler and no thread of a submission runs any more
