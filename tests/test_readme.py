import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs_and_is_short(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    exec(compile(example, str(README), "exec"), {})
    shown = capsys.readouterr().out
    assert "a path was found" in shown
    assert float(shown.strip().split()[-1]) > 0.85


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
