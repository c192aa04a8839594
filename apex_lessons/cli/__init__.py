"""The command line: ``python -m apex_lessons explain config.json`` and its neighbours.

Each command is a module of this package with ``HELP``, ``add_arguments(parser)`` and
``run(arguments) -> exit status``; it is imported when it is asked for. Exit status: 0
fine (warnings on stderr), 2 refused, with the reason on stderr. Never a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

# command -> its module in this package
COMMANDS = {"explain": "explain", "compare": "compare", "grade": "grade",
            "extrapolate": "extrapolate"}
OK, REFUSED = 0, 2


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status.

    ``argv``: the words after the program's name, ``sys.argv[1:]`` if None. Nothing is
    raised: an unusable input gives 2 and one line on stderr.

    >>> main(["explain", "gpt2"])  # doctest: +ELLIPSIS
    Rotary positions of gpt2
    ...
    0
    """
    _printable_streams()
    try:
        arguments = _parser(argv).parse_args(argv)
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # argparse: 0 for --help, 2 for a wrong option
        return stop.code if isinstance(stop.code, int) else REFUSED
    except BrokenPipeError:  # `... | head`: the reader has seen enough
        _silence_stdout()
        return OK
    except (ValueError, TypeError, OSError) as error:
        return refuse(str(error))
    except (MemoryError, RecursionError):
        return refuse("the input is too large or nested too deep to be explained")
    except KeyboardInterrupt:
        return refuse("interrupted")


def refuse(reason: str) -> int:
    """Say on stderr why nothing was done; returns the exit status for that."""
    from apex_lessons.models.report import clean

    print(f"apex_lessons: {clean(reason, 1000)}", file=sys.stderr)
    return REFUSED


def warn(text: str) -> None:
    """One warning on stderr."""
    from apex_lessons.models.report import clean

    print(f"warning: {clean(text, 1000)}", file=sys.stderr)


def _parser(argv: list[str] | None) -> argparse.ArgumentParser:
    """The parser with the one command that is asked for, or with all for the help."""
    words = sys.argv[1:] if argv is None else argv
    asked = next((word for word in words if word in COMMANDS), None)
    parser = argparse.ArgumentParser(
        prog="python -m apex_lessons", description="What happens to a token before"
        " attention: tools for your own model.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = None
        if asked in (None, name):
            module = importlib.import_module(f"{__name__}.{COMMANDS[name]}")
        command = commands.add_parser(name, help=module.HELP if module else None,
                                      description=module.HELP if module else None)
        if module:
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def _printable_streams() -> None:
    """A terminal that cannot show a character gets a stand-in, no exception."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    """Nobody reads standard output any more: what is left must not raise at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
