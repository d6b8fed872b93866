"""The implicit attribute graph, shortest paths in it, and plans in expectation."""

from saplan.planning.expectation import ExpectedRoute, Landscape, SpreadEdges
from saplan.planning.graph import EdgeFunction, Edges, Graph, Raised
from saplan.planning.route import Outcome, Plan, PlannedTransition, Route, Successors
from saplan.planning.search import search

AnyRoute = Route | ExpectedRoute

__all__ = [
    "AnyRoute",
    "EdgeFunction",
    "Edges",
    "ExpectedRoute",
    "Graph",
    "Landscape",
    "Outcome",
    "Plan",
    "PlannedTransition",
    "Raised",
    "Route",
    "SpreadEdges",
    "Successors",
    "search",
]
