"""Plain reinforcement-learning machinery that knows nothing of attributes."""
