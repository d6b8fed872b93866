"""The colours of pictures and terminals: Okabe and Ito's set, safe for colour-blind eyes."""

Colour = tuple[int, int, int]
Paint = Colour | tuple[int, int, int, int]
"""A colour, perhaps with its opacity (0..255)."""

KINDS: dict[str, Colour] = {
    "red": (206, 66, 30), "green": (0, 148, 108), "blue": (0, 107, 178), "yellow": (240, 196, 32),
    "purple": (196, 104, 158), "cyan": (86, 180, 233), "grey": (138, 132, 124),
}  # fmt: skip
TERMINAL = {"red": 202, "green": 36, "blue": 33, "yellow": 220, "purple": 175, "cyan": 117, "grey": 246}
"""The nearest of a terminal's 256 colours that are legible on both dark and light backgrounds."""

PAGE: Colour = (233, 229, 221)
FLOOR: Colour = (251, 249, 245)
LINE: Colour = (229, 224, 214)
WALL: Colour = (76, 84, 102)
INK: Colour = (44, 50, 64)
SOFT: Colour = (104, 108, 118)
WHITE: Colour = (255, 255, 255)
WOOD: Colour = (150, 108, 68)
GOOD: Colour = (11, 122, 87)
BAD: Colour = (185, 58, 36)
GOAL: Colour = (122, 79, 192)
CURRENT: Colour = (255, 236, 176)
"""Background of the transition that the agent is attempting."""
HISTORY: Colour = (255, 90, 54)
"""The path of ρ so far."""


def kind(name: str) -> Colour:
    """The colour of a kind; unknown kinds are grey."""
    return KINDS.get(name, KINDS["grey"])


def shade(colour: Colour, amount: float) -> Colour:
    """Towards white for a positive amount, towards black for a negative one; 1 goes all the way."""
    end = 255 if amount > 0 else 0
    red, green, blue = (round(c + (end - c) * abs(amount)) for c in colour)
    return red, green, blue


def contrast(colour: Colour) -> Colour:
    """White or ink, whichever is legible on the colour."""
    luminance = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    return WHITE if luminance < 150 else INK
