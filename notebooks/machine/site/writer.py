"""What Sphinx is told beyond its settings: mathematics, tables, menu and search."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from notebooks.machine.site.mathematics import mathml

LONGEST_TEXT = 20_000  # characters of one section in the search index


def visit_math(writer, node) -> None:
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(writer, node) -> None:
    formula = mathml(node.astext(), block=True)
    writer.body.append(f'<div class="formula scroll">{formula}</div>\n')
    raise nodes.SkipNode


class Translator(HTML5Translator):
    """Sphinx's HTML with tables in boxes of their own and headers that name columns."""

    def visit_table(self, node):
        self.tables = [*getattr(self, "tables", []), len(self.body)]
        self.body.append('<div class="scroll">')
        super().visit_table(node)

    def depart_table(self, node):
        super().depart_table(node)
        start = self.tables.pop()
        self.body[start:] = [breakable("".join(self.body[start:])), "</div>\n"]

    def visit_entry(self, node):
        super().visit_entry(node)
        if not self.body[-1].startswith("<th"):
            return
        if node.astext().strip():
            self.body[-1] = self.body[-1].replace("<th", '<th scope="col"', 1)
            self.body.append(unseen_words(node))
        else:  # an empty corner is the header of nothing
            self.body[-1] = self.body[-1].replace("<th", "<td", 1)
            self.context[-1] = self.context[-1].replace("</th", "</td")


def breakable(table: str) -> str:
    """A long name in code may go on in the next line behind each underscore."""
    return re.sub(r'(?<=<span class="pre">)[^<]*',
                  lambda name: name.group(0).replace("_", "_<wbr>"), table)


def unseen_words(node: nodes.entry) -> str:
    """A lone formula is no name for a column: its signs are said as text."""
    formulas = list(node.findall(nodes.math))
    if not formulas or node.astext().strip() != "".join(f.astext() for f in formulas):
        return ""
    signs = html.escape("".join(map(signs_of, formulas)))
    return f'<span class="unseen">{signs}</span>'


def number_of(docname: str) -> str:
    """03-rope -> 03; nothing for the pages that are no lesson."""
    found = re.match(r"\d\d(?=-)", docname)
    return found.group(0) if found else ""


def title_of(app: Sphinx, docname: str) -> str:
    """A page's title without the number in front: Lesson 04: YaRN -> YaRN."""
    return re.sub(r"^(?:Lesson|Page) \d\d: ", "", app.env.titles[docname].astext())


def menu(app: Sphinx) -> list[dict]:
    """Every lesson in reading order."""
    pages = sorted(name for name in app.env.all_docs if number_of(name))
    return [{"name": name, "number": number_of(name),
             "title": title_of(app, name)} for name in pages]


def add_menu(app: Sphinx, pagename: str, templatename, context: dict, doctree) -> None:
    context["menu"] = menu(app)
    context["number"] = number_of(pagename)
    found = pagename in app.env.titles
    context["title_text"] = title_of(app, pagename) if found else "Search"
    context["body"] = held_together(context.get("body", ""))


def held_together(body: str) -> str:
    """No line ends between a formula and the bracket or the full stop at it."""
    formula = r'(\(?)(<math display="inline">(?:(?!</math>).)*</math>)([.,;:)]*)'

    def whole(found: re.Match) -> str:
        if found.group(1) or found.group(3):
            return f'<span class="whole">{found.group(0)}</span>'
        return found.group(0)

    return re.sub(formula, whole, body, flags=re.DOTALL)


# --- search -------------------------------------------------------------------------

def signs_of(formula: nodes.math) -> str:
    """A formula as its signs in a row: θi = b−2i/d."""
    return html.unescape(re.sub(r"<[^>]*>", "", mathml(formula.astext())))


def spoken(paragraph: nodes.paragraph) -> str:
    """The paragraph's words, formulas without TeX."""
    return "".join(signs_of(text.parent) if isinstance(text.parent, nodes.math)
                   else text.astext() for text in paragraph.findall(nodes.Text))


def words_of(section: nodes.section) -> str:
    """The prose of a section without its subsections, code and outputs."""
    found = []
    for child in section.children:
        if isinstance(child, (nodes.section, nodes.title)):
            continue
        found += [spoken(part) for part in child.findall(nodes.paragraph)]
    return re.sub(r"\s+", " ", " ".join(found))[:LONGEST_TEXT]


def sections(app: Sphinx) -> list[dict]:
    """One entry a section: where it is, what it is called, what it says."""
    entries = []
    for page in menu(app):
        tree = app.env.get_doctree(page["name"])
        for section in tree.findall(nodes.section):
            title = section.next_node(nodes.title)
            entries.append({"page": f"{page['number']} {page['title']}",
                            "link": f"{page['name']}.html#{section['ids'][0]}",
                            "title": title.astext(), "text": words_of(section)})
    return entries


def write_search(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        text = json.dumps(sections(app), ensure_ascii=False, separators=(",", ":"))
        place = Path(app.outdir) / "_static" / "sections.js"
        place.write_text(f"globalThis.sections = {text};\n", encoding="utf-8")


def no_search_of_its_own(app: Sphinx) -> None:
    app.builder.search = False


def setup(app: Sphinx) -> dict:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.set_translator("html", Translator)
    app.connect("builder-inited", no_search_of_its_own)
    app.connect("html-page-context", add_menu)
    app.connect("build-finished", write_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
