"""Sphinx's settings for the site; ``make.py`` beside this file starts it."""

from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "APEX lessons"
language = "en-GB"
extensions = ["myst_nb", "notebooks.machine.site.writer"]
nb_execution_mode = "off"
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "text/plain", 10)]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

html_theme = "theme"
html_theme_path = [str(HERE)]
html_title = "APEX lessons"
html_math_renderer = "mathml"
html_additional_pages = {"search": "search.html"}
html_use_index = html_domain_indices = False
html_copy_source = html_show_sourcelink = False
html_permalinks_icon = "#"
highlight_language = "python"
smartquotes = False
