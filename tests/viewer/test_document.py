"""Every link of the document and every asset of the page exists."""

import re

from saplan.viewer.server import LISTED, STATIC
from tests.loading import ROOT


def test_every_link_of_the_document_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")):
        assert (ROOT / "docs" / target).exists(), target


def test_the_page_fetches_nothing_but_what_is_listed() -> None:
    assert {name for name, _ in LISTED.values()} == {path.name for path in STATIC.iterdir()}
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:src|href)=.https?:|@import|url\(.?http|[^:]//cdn", text), path.name
        assert " onclick=" not in text
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    wanted = set(re.findall(r'(?:src|href)="([^"#]+)"', page))
    imported = set(re.findall(r'from "\./([^"]+)"', "".join(path.read_text() for path in STATIC.glob("*.js"))))
    assert wanted | imported <= set(LISTED)
