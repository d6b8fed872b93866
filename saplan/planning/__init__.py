"""The implicit attribute graph and the shortest path in it."""

from saplan.planning.expectation import ExpectedRoute, Landscape
from saplan.planning.graph import EdgeFunction, Graph, Raised
from saplan.planning.search import Outcome, Plan, Route, Ways, search

__all__ = [
    "EdgeFunction",
    "ExpectedRoute",
    "Graph",
    "Landscape",
    "Outcome",
    "Plan",
    "Raised",
    "Route",
    "Ways",
    "search",
]
