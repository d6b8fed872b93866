"""Figures that the paper reports."""

PAPER = {
    "structured": {"switches": 0.893, "exchange": 0.93, "mining": 0.816},
    "unstructured": {"switches": 0.096, "exchange": 0.88, "mining": 0.208},
    "curriculum": {"switches": 0.136, "exchange": 0.14, "mining": 0.002},
}
"""Success by method and game: the paper's Table 1."""
PAPER_STEPS = {"switches": 50_000_000, "exchange": 40_000_000, "mining": 50_000_000}
"""The paper's training budgets; it states none for mining, where this is the budget of switches."""


def paper_success(game: str, method: str = "structured") -> float | None:
    """The success that the paper reports, or None for a game or method that it does not have."""
    return PAPER.get(method, {}).get(game)
