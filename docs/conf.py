"""The documentation site: Sphinx with MyST and Furo. `make docs` builds it into build/docs, without a network."""

import importlib.metadata
import re
from pathlib import Path
from typing import Any

project = "saplan"
author = "the saplan authors"
copyright = "2026, the saplan authors"
release = importlib.metadata.version("saplan")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures", "theme"]
nitpicky = False

html_theme = "furo"
html_title = f"saplan {release}"
html_favicon = "../saplan/viewer/static/icon.svg"
html_logo = "../saplan/viewer/static/icon.svg"
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = [
    "misc.highlighting_failure",  # sketches that are almost Python
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": False}
default_role = "code"  # docstrings write names as `name`


def setup(app: Any) -> None:
    """Connect what pages and docstrings need."""
    app.connect("source-read", name_files)
    app.connect("autodoc-process-docstring", escape)


def name_files(app: Any, page: str, source: list[str]) -> None:
    """Name files of the repository that are not pages, in place of links to them; skip patterns without a page."""
    here = Path(__file__).parent
    lines = source[0].splitlines(keepends=True)
    source[0] = "".join(line for line in lines if not re.fullmatch(r"\w+\*\n", line) or any(here.glob(line.strip())))
    source[0] = re.sub(r"\[([^\]]+)\]\((?:\.\./[^)]+|pictures/)\)", r"\1", source[0])


def escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep |𝓑| and *name of docstrings from being read as markup."""
    lines[:] = [line.replace("|", r"\|") if "`" not in line else line for line in lines]
