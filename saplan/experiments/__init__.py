"""Sweeps over games, methods and seeds, and the paper's tables and figures from their results."""
