"""The colours of kinds, on a canvas and in a terminal: Okabe and Ito's set, safe for colour-blind eyes."""

Colour = tuple[int, int, int]

KINDS: dict[str, Colour] = {
    "red": (206, 66, 30),
    "green": (0, 148, 108),
    "blue": (0, 107, 178),
    "yellow": (240, 196, 32),
    "purple": (196, 104, 158),
    "cyan": (86, 180, 233),
    "grey": (138, 132, 124),
}
TERMINAL: dict[str, int] = {
    "red": 202,
    "green": 36,
    "blue": 33,
    "yellow": 220,
    "purple": 175,
    "cyan": 117,
    "grey": 246,
}
"""The same in the 256 colours of a terminal, picked to be read on dark and on light."""

PAGE: Colour = (233, 229, 221)
FLOOR: Colour = (251, 249, 245)
LINE: Colour = (229, 224, 214)
WALL: Colour = (76, 84, 102)
INK: Colour = (44, 50, 64)
WHITE: Colour = (255, 255, 255)
WOOD: Colour = (150, 108, 68)


def shade(colour: Colour, amount: float) -> Colour:
    """Towards white for a positive amount, towards black for a negative one; 1 goes all the way."""
    end = 255 if amount > 0 else 0
    red, green, blue = (round(c + (end - c) * abs(amount)) for c in colour)
    return red, green, blue


def on_top(colour: Colour) -> Colour:
    """White or ink, whichever can be seen on the colour."""
    luminance = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    return WHITE if luminance < 150 else INK
