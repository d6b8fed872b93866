"""The documentation site: Sphinx with MyST and Furo. `make docs` builds it into build/docs, without a network."""

import importlib.metadata
from typing import Any

project = "saplan"
author = "the saplan authors"
copyright = "2026, the saplan authors"
release = importlib.metadata.version("saplan")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures"]
nitpicky = False

html_theme = "furo"
html_title = f"saplan {release}"
html_favicon = "../saplan/viewer/static/icon.svg"
html_logo = "../saplan/viewer/static/icon.svg"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = [
    "toc.empty_glob",  # a page of the index that is not written yet
    "misc.highlighting_failure",  # sketches that are almost Python
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": False}
default_role = "code"  # docstrings write names as `name`


def setup(app: Any) -> None:
    """Connect what docstrings need."""
    app.connect("autodoc-process-docstring", escape)


def escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep |𝓑| and *name of docstrings from being read as markup."""
    lines[:] = [line.replace("|", r"\|") if "`" not in line else line for line in lines]
