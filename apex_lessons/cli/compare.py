"""``compare``: the rotary settings of two models side by side."""

from __future__ import annotations

import argparse
import json
import sys

from apex_lessons import cli
from apex_lessons.cli.explain import tokens
from apex_lessons.cli.terminal import print_lines

HELP = "compare two configs pair by pair: config files or names of released models"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``compare``."""
    parser.add_argument("a", help="a config.json or the name of a released model")
    parser.add_argument("b", help="the other one")
    parser.add_argument("--json", action="store_true",
                        help="every pair, numbers at full precision")
    parser.add_argument("--length", type=tokens, metavar="N", help="a text of N tokens")
    parser.add_argument("--colour", "--color", choices=("auto", "always", "never"),
                        default="auto", help="colours on a terminal (default: auto)")


def run(arguments: argparse.Namespace) -> int:
    """Compare two configs; returns the exit status."""
    from apex_lessons.models import compare

    comparison = compare(arguments.a, arguments.b, arguments.length)
    if arguments.json:
        print(json.dumps(comparison.data(), indent=2, allow_nan=False))
    else:
        print_lines(comparison.lines(), arguments.colour)
    sys.stdout.flush()
    for side, report in (("a", comparison.a), ("b", comparison.b)):
        for text in report.settings.warnings:
            cli.warn(f"{side}: {text}")
    return cli.OK
