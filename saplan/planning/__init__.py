"""The implicit attribute graph, shortest paths in it, and plans in expectation."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from saplan.planning.dials import DialRoute
from saplan.planning.expectation import ExpectedRoute, expected_routes, expected_successors
from saplan.planning.graph import EdgeFunction, Edges, Graph, Raised
from saplan.planning.landscape import Landscape, SpreadEdges
from saplan.planning.route import Outcome, Plan, PlannedTransition, Route, Successors
from saplan.planning.search import search

AnyRoute = Route | ExpectedRoute | DialRoute


def successors_of(routes: Sequence[AnyRoute], rho: Float[np.ndarray, "n K"]) -> list[Successors | None]:
    """Every transition from one ρ per route; None where a search did not expand it."""
    found = [None if isinstance(route, ExpectedRoute) else route.successors(rho[k]) for k, route in enumerate(routes)]
    expected = [(k, route) for k, route in enumerate(routes) if isinstance(route, ExpectedRoute)]
    for landscape in dict.fromkeys(route.landscape for _, route in expected):
        those = [(k, route) for k, route in expected if route.landscape is landscape]
        places = [k for k, _ in those]
        for k, successors in zip(places, expected_successors([one for _, one in those], rho[places]), strict=True):
            found[k] = successors
    return found


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
    "expected_routes",
    "search",
    "successors_of",
]
