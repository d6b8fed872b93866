"""Draws the parts of saplan and what flows between them: python docs/pictures/diagram.py writes diagram.svg."""

from pathlib import Path

WIDTH, HEIGHT = 880, 390
BOX, GOAL, INK, SOFT, LINE = "#fbf9f5", "#ece4f8", "#2c3240", "#666c7a", "#8a8f9a"
BOXES = {
    # name: (x, y, width, height, title, words)
    "explore": (20, 40, 190, 74, "exploration policy", "looks for changes"),
    "world": (20, 150, 190, 74, "world", "attributes ρ = f(state)"),
    "execute": (20, 260, 190, 74, "execution policy", "makes one change δρ"),
    "memory": (300, 40, 200, 74, "memory 𝓑", "distinct changes, visits"),
    "detector": (300, 150, 200, 74, "edge detector", "where is δρ feasible?"),
    "propose": (300, 260, 200, 74, "proposals", "changes to practise"),
    "goal": (600, 40, 240, 74, "your goal", "“red=2 blue=1”"),
    "planner": (600, 190, 240, 104, "planner", "path of changes from ρ to the goal"),
}
ARROWS = [
    # from, to, label, x and y of the label
    ((115, 114), (115, 150), "actions", 123, 136),
    ((115, 260), (115, 224), "actions", 123, 247),
    ((300, 60), (210, 60), "reward", 232, 54),
    ((210, 172), (300, 92), "changes", 212, 110),
    ((210, 187), (300, 187), "yes / no", 228, 180),
    ((400, 114), (400, 150), "", 0, 0),
    ((400, 224), (400, 260), "", 0, 0),
    ((300, 297), (210, 297), "subgoal δρ", 220, 290),
    ((500, 77), (600, 205), "𝓑", 560, 142),
    ((500, 187), (600, 225), "p of each", 508, 228),
    ((720, 114), (720, 190), "", 0, 0),
]
STYLE = f"""text {{ font: 15px system-ui, 'DejaVu Sans', sans-serif; fill: {INK} }}
.title {{ font-weight: 600 }} .soft {{ fill: {SOFT}; font-size: 13px }}
.head {{ fill: {SOFT}; font-size: 13px; letter-spacing: 0.04em }}
path {{ stroke: {LINE}; stroke-width: 1.6; fill: none; marker-end: url(#tip) }}"""


def diagram() -> str:
    """The picture as SVG."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The parts of saplan and what flows between them</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        f'<polygon points="0,0 8,4 0,8" fill="{LINE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="14" fill="#f2eee6"/>',
        '<text class="head" x="20" y="26">training, without any task</text>',
        '<text class="head" x="600" y="26">afterwards</text>',
    ]
    lines += [f'<path d="M{x1} {y1}L{x2} {y2}"/>' for (x1, y1), (x2, y2), *_ in ARROWS]
    lines += ['<path d="M720 294V352Q720 364 708 364H127Q115 364 115 352V336" stroke-dasharray="5 4"/>']
    lines += ['<text class="soft" x="440" y="356">the next change to make; then plan again</text>']
    lines += [f'<text class="soft" x="{x}" y="{y}">{label}</text>' for *_, label, x, y in ARROWS if label]
    for name, (x, y, width, height, title, words) in BOXES.items():
        fill, middle = GOAL if name in ("goal", "planner") else BOX, x + width / 2
        lines.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="{fill}" stroke="#ddd7ca"/>'
        )
        centre = y + height / 2
        lines.append(f'<text class="title" x="{middle:g}" y="{centre - 4:g}" text-anchor="middle">{title}</text>')
        lines.append(f'<text class="soft" x="{middle:g}" y="{centre + 18:g}" text-anchor="middle">{words}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("diagram.svg").write_text(diagram(), encoding="utf-8")
