"""The oracle: it knows the rules of a game and sees its whole state."""
