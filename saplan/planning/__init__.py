"""The implicit attribute graph, shortest paths in it, and plans in expectation."""

from saplan.planning.dials import DialRoute
from saplan.planning.expectation import ExpectedRoute, Landscape, SpreadEdges
from saplan.planning.graph import EdgeFunction, Edges, Graph, Raised
from saplan.planning.search import Outcome, Plan, PlannedTransition, Route, Successors, search

AnyRoute = Route | ExpectedRoute | DialRoute

__all__ = [
    "AnyRoute",
    "DialRoute",
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
