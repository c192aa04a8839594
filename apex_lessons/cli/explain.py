"""``explain``: what a model's config says about rotary positions."""

from __future__ import annotations

import argparse
import json
import sys

from apex_lessons import cli
from apex_lessons.cli.terminal import print_lines

HELP = "explain the rotary positions of a config.json or of a released model"
EPILOG = """--json prints one object. Its keys are stable: schema, source, model_type,
family, rotary, positions, layout, rope_type, head_dim, rotary_dims, pairs, base,
factor, original_length, parameters, defaults, inv_freq, wavelengths, regimes, counts,
longer_than_original, attention_factor, softmax_factor, score_factor, per_layer_type,
layers_without_rotary, warnings, notes and more; apex_lessons.models.Report.data says
what each means. Numbers have full precision; a pair that stands has wavelength null."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``explain``."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("config", help="a config.json, a directory with one, - for"
                        " standard input, or the name of a released model")
    parser.add_argument("--json", action="store_true", help="numbers at full precision")
    parser.add_argument("--figure", metavar="OUT.png", help="draw the frequencies by"
                        " pair")
    parser.add_argument("--length", type=tokens, metavar="N",
                        help="a text of N tokens (matters to dynamic and longrope)")
    parser.add_argument("--colour", "--color", choices=("auto", "always", "never"),
                        default="auto", help="colours on a terminal (default: auto)")


def run(arguments: argparse.Namespace) -> int:
    """Explain one config; returns the exit status."""
    from apex_lessons.models import explain

    report = explain(arguments.config, arguments.length)
    if arguments.json:
        print(json.dumps(report.data(), indent=2, allow_nan=False))
    else:
        print_lines(report.lines(warnings=False), arguments.colour)
    sys.stdout.flush()
    for text in report.settings.warnings:
        cli.warn(text)
    if arguments.figure:
        return save_figure(report, arguments.figure)
    return cli.OK


def save_figure(report, path: str) -> int:
    """Draw the report's frequencies into a file; returns the exit status."""
    if not report.settings:
        return cli.refuse(f"nothing to draw: {report.settings.positions} positions")
    try:
        from apex_lessons.figures.config import regime_bands
    except ImportError as error:
        return cli.refuse(f"--figure needs the package {error.name}: install it, or"
                          " leave --figure out")
    settings = report.settings[report.settings.main]
    try:
        regime_bands(settings, title=report.name).savefig(path)
    except (OSError, ValueError) as error:
        return cli.refuse(f"the picture cannot be written: {error}")
    return cli.OK


def tokens(text: str) -> int:
    """A number of tokens from the command line, 1 to 2^53."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else 0
    if not 1 <= number <= 2**53:
        raise argparse.ArgumentTypeError("a whole number of tokens is needed, 1 or"
                                         " more")
    return number
