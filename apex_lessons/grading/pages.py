"""The pages and the table about a class; everything from a submission is escaped."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Any

from apex_lessons.grading.task import Assignment

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { border: 1px solid #888; padding: .3rem .6rem; text-align: left;
         vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; border: 1px solid #888; padding: .5rem; white-space: pre-wrap; }
.bar { display: inline-block; height: .8rem; background: #0072b2; }
"""
# Control characters, and those that turn the direction of writing.
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e"
                       r"\u2066-\u2069]")
BINS = 10


class Html(str):
    """Text that is HTML already; every other text is escaped."""


def shown(value: Any) -> Html:
    """Any value as HTML text.

    >>> shown("<b>"), shown(2.50)
    ('&lt;b&gt;', '2.5')
    """
    if isinstance(value, Html):
        return value
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = INVISIBLE.sub("\ufffd", text.replace("\r\n", "\n"))
    return Html(html.escape(text.encode("utf-8", "backslashreplace").decode()))


def words(text: str) -> Html:
    """A sentence whose `code` is set as code."""
    return Html(re.sub(r"`([^`]+)`", r"<code>\1</code>", shown(text)))


def page(title: str, *parts: str) -> str:
    """A whole page, without anything that must be loaded or executed."""
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta http-equiv="Content-Security-Policy"'
            ' content="default-src \'none\'; style-src \'unsafe-inline\'">\n'
            f"<title>{shown(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<main>\n<h1>{shown(title)}</h1>\n" + "\n".join(filter(None, parts))
            + "\n</main>\n</body>\n</html>\n")


def table(caption: str, head: list[str], rows: list[list[Any]]) -> Html:
    """A table whose first column names its rows; numbers to the right."""
    top = "".join(f'<th scope="col">{shown(name)}</th>' for name in head)
    body = "".join("<tr>" + f'<th scope="row">{shown(row[0])}</th>'
                   + "".join(map(_data, row[1:])) + "</tr>\n" for row in rows)
    return Html(f"<table>\n<caption>{shown(caption)}</caption>\n<thead><tr>{top}</tr>"
                f"</thead>\n<tbody>\n{body}</tbody>\n</table>")


def _data(value: Any) -> str:
    kind = ' class="number"' if isinstance(value, (int, float)) else ""
    return f"<td{kind}>{shown(value)}</td>"


def items(heading: str, lines: list[str]) -> Html:
    """A heading and a list, or nothing."""
    if not lines:
        return Html("")
    listed = "".join(f"<li>{words(line)}</li>\n" for line in lines)
    return Html(f"<h2>{shown(heading)}</h2>\n<ul>\n{listed}</ul>")


# --- one student ---------------------------------------------------------------------

def student_page(result: dict, assignment: Assignment) -> str:
    """What a student receives: points, why, and where to look."""
    total = f"{result['points']:g} of {result['out_of']:g} points"
    what = {"graded": total, "not graded": "Not graded yet."}.get(
        result["status"], f"{total}: {result['status']}.")
    cells = [f"<h3>Cell {shown(label.removeprefix('cell '))}</h3>\n"
             f"<pre>{shown(said)}</pre>" for label, said in result["cells"]]
    if cells:
        cells.insert(0, "<h2>Cells that did not end well</h2>")
    to_read = [f"{one.name}: {one.points:g} points, read by your teacher"
               for one in assignment.written]
    return page(f"{assignment.title}: {result['student']}",
                f"<p><strong>{shown(what)}</strong> {shown(result['reason'])}</p>",
                f"<p>File: {shown(result['file'])}</p>" if result["file"] else "",
                *[_task(one) for one in result["tasks"]], *cells,
                items("Notes", result["notes"]), items("Written questions", to_read))


def _task(task: dict) -> str:
    rows = [[line["name"], float(line["points"]), float(line["out_of"]),
             words(line["message"] or "Right.")] for line in task["criteria"]]
    name = f"<strong>{shown(task['mistake'])}</strong>: " if task["mistake"] else ""
    said = f"<p>{name}{words(task['message'])}</p>\n" if task["message"] else ""
    return (f"<h2>{shown(task['name'])}: {shown(task['status'])}</h2>\n{said}"
            + table(f"{task['points']:g} of {task['out_of']:g} points",
                    ["criterion", "points", "of", "what was found"], rows))


# --- the class -----------------------------------------------------------------------

def grades(results: list[dict], assignment: Assignment) -> list[list[Any]]:
    """The rows of grades.csv."""
    names = [task.name for task in assignment.tasks]
    rows = [["student", "status", "points", "out_of", *names, "mistakes", "reason",
             "file"]]
    for one in results:
        points = {task["name"]: task["points"] for task in one["tasks"]}
        mistakes = [f"{task['name']}: {task['mistake']}" for task in one["tasks"]
                    if task["mistake"]]
        graded = one["status"] != "not graded"  # no points yet is not zero points
        rows.append([one["student"], one["status"], one["points"] if graded else "",
                     one["out_of"], *[points.get(name, 0.0) if graded else ""
                                      for name in names],
                     "; ".join(mistakes), one["reason"], one["file"]])
    return rows


def overview(results: list[dict], assignment: Assignment, links: dict[str, str]) -> str:
    """The class at a glance: points, mistakes, lines of the rubric, students."""
    read = '<p><a href="written.html">The answers to the written questions</a></p>'
    states = Counter(one["status"] for one in results)
    rows = [[_link(one["student"], links), one["status"], float(one["points"]),
             _mistakes(one), one["reason"]] for one in results]
    return page(f"{assignment.title}: the class",
                f"<p>{len(results)} students: " + shown(", ".join(
                    f"{count} {state}" for state, count in states.items())) + "</p>",
                read if assignment.written else "", _distribution(results, assignment),
                _mistake_table(results, assignment), _rubric(results, assignment),
                table("Students", ["student", "status", "points", "mistakes", "reason"],
                      rows))


def _link(student: str, links: dict[str, str]) -> Html:
    from urllib.parse import quote

    return Html(f'<a href="{quote(links[student])}">{shown(student)}</a>')


def _mistakes(result: dict) -> str:
    return "; ".join(f"{task['name']}: {task['mistake'] or task['status']}"
                     for task in result["tasks"] if task["status"] != "right")


def _share(count: int, total: int) -> Html:
    percent = round(100 * count / max(total, 1))
    bar = f'<span class="bar" style="width: {percent / 10}rem"></span>'
    return Html(f"{bar} {percent} %")


def _distribution(results: list[dict], assignment: Assignment) -> Html:
    counted = [one["points"] for one in results if one["status"] != "not graded"]
    width = (assignment.points or 1) / BINS
    bins = Counter(min(int(points / width), BINS - 1) for points in counted)
    rows = [[f"{low * width:g} to {(low + 1) * width:g}", bins[low],
             _share(bins[low], len(counted))] for low in range(BINS)]
    mean = sum(counted) / max(len(counted), 1)
    return table(f"Points (mean {mean:.3g} of {assignment.points:g})",
                 ["points", "students", "share"], rows)


def _mistake_table(results: list[dict], assignment: Assignment) -> Html:
    """Which mistakes, how often; those without a name by what was found."""
    graded = [task for one in results for task in one["tasks"]]
    counts = Counter((task["name"], task["mistake"] or _unnamed(task))
                     for task in graded if task["status"] != "right")
    words_of = {(task.name, wrong.name): wrong.explanation for task in assignment.tasks
                for wrong in task.wrong_answers}
    most = len([one for one in results if one["tasks"]])
    rows = [[task, mistake, count, _share(count, most), words(words_of.get(
        (task, mistake), ""))] for (task, mistake), count in
        sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    head = ["task", "mistake", "students", "share", "explanation"]
    return table("Mistakes", head, rows)


def _unnamed(task: dict) -> str:
    """What was found in the first line that is not right, without its details."""
    if task["status"] == "not attempted":
        return task["status"]
    found = next(line["message"] for line in task["criteria"] if line["message"])
    return re.split(r" \(|: |;", re.sub(r"^Hidden input \d+ of \d+: ", "", found))[0]


def _rubric(results: list[dict], assignment: Assignment) -> Html:
    """How many have each line of the rubric."""
    lines = [(task["name"], line["name"], line["message"] == "") for one in results
             for task in one["tasks"] for line in task["criteria"]]
    right = Counter((task, name) for task, name, fine in lines if fine)
    most = len([one for one in results if one["tasks"]])
    rows = [[task.name, line.name, right[task.name, line.name],
             _share(right[task.name, line.name], most)]
            for task in assignment.tasks for line in task.criteria]
    return table("The rubric", ["task", "criterion", "students right", "share"], rows)


def written_answers(results: list[dict], assignment: Assignment) -> str:
    """All answers to the written questions, for the teacher to read and mark."""
    parts = []
    for question in assignment.written:
        parts.append(f"<h2>{shown(question.name)} ({question.points:g} points)</h2>")
        parts += [f"<h3>{shown(one['student'])}</h3>\n<pre>"
                  f"{shown(one['written'].get(question.name, '(nothing)'))}</pre>"
                  for one in results if one["status"] == "graded"]
    return page(f"{assignment.title}: written answers", *parts)
