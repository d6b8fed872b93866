"""The implicit attribute graph and the shortest path in it."""

from saplan.planning.graph import EdgeFunction, Graph, Raised, with_raised
from saplan.planning.search import Outcome, Plan, Route, search

__all__ = ["EdgeFunction", "Graph", "Outcome", "Plan", "Raised", "Route", "search", "with_raised"]
