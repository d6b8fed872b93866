"""Certificates of unreachable goals: found for each kind of reason, told in words, and refused when tampered with."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from saplan.algebra import Categorical, Cyclic, Dihedral, Integer, Natural, Product, Real
from saplan.planning.algebraic import find_plan
from saplan.planning.certificate import unreachable_because
from saplan.planning.integer_program import Limits, Status
from saplan.planning.needs import Needs
from saplan.planning.parity import is_parity, parities
from saplan.planning.problem import Problem
from saplan.planning.proof import find_certificate, fractional_weights
from saplan.planning.proof_checker import Certificate, Modular, Split, Weighted, check
from tests.planning.known_worlds import exchange, posed, switches
from tests.planning.small_problems import SmallProblem

TWO = Product.of(a=Natural(), b=Natural())
FREE = np.inf


def why(given: Problem) -> str:
    """Why a goal is unreachable, in words."""
    words = unreachable_because(given)
    assert words is not None
    return words


CASES: dict[str, tuple[Problem, type | None, str]] = {
    "weights": (posed(TWO, [3, 0], [2, 2], [2, 2], [[-1, 1], [1, -1]]), Weighted, "a + b, which is 3 now"),
    "remainders": (posed(TWO, [1, 0], [0, 0], [0, 0], [[2, 0], [-2, 0], [1, 1]]), None, ""),
    "parity": (
        posed(Product.of(n=Integer()), [0], [7], [7], [[2], [-4]]),
        Modular,
        "every change keeps n the same modulo 2; it is 0 now, and the goal needs 1",
    ),
    "a dial": (posed(Product.of(d=Cyclic(6)), [0], [3], [3], [[2]]), None, ""),
    "a split": (posed(Product.of(n=Natural()), [0], [7], [7], [[3], [5]]), Split, "not all at once"),
    "labels": (posed(Product.of(p=Categorical(tuple("xyz"))), [0], [2], [2], [[2], [4]]), type(None), "no change"),
    "amounts": (posed(Product.of(m=Real(low=0.0)), [0], [4.5], [4.6], [[0.8]]), Split, "not all at once"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_reason_is_found(name: str) -> None:
    given, kind, words = CASES[name]
    certificate = find_certificate(given)
    assert certificate is not None
    assert kind is None or isinstance(certificate.reason, kind)
    assert check(given, certificate)
    assert words in why(given)


def test_words_name_what_runs_out() -> None:
    deltas = [[-1, 1], [1, 0]]
    given = posed(TWO, [2, 1], [-FREE, 5], [FREE, 5], deltas[:1])
    assert unreachable_because(given) == (
        "b can become at most 3 from here: no change makes b without using up a, of which 2 are left"
    )
    assert unreachable_because(posed(TWO, [2, 1], [-FREE, 5], [FREE, 5], deltas)) is None
    assert "no change makes b" in why(posed(TWO, [2, 1], [-FREE, 5], [FREE, 5], [[1, 0]]))
    assert unreachable_because(posed(TWO, [2, 3], [-FREE, 1], [FREE, 1], deltas)) == (
        "b can become no less than 3 from here: no change uses up b"
    )


def test_impossible_exchange_in_words() -> None:
    assert "red can become at most" in why(exchange(8, (30, 30, 30)))
    assert "not all at once" in why(exchange(8, (10, 10, 10)))


def test_needs_that_nothing_fulfils() -> None:
    needs = Needs(np.array([[-np.inf, 1.0]]), np.full((1, 2), np.inf))
    given = posed(TWO, [0, 0], [1, -FREE], [FREE, FREE], [[1, 0]], needs=needs)
    certificate = find_certificate(given)
    assert certificate is not None
    assert certificate.reason is None
    assert check(given, certificate)
    without = replace(given, needs=None)
    assert not check(without, certificate), "without the need the change is possible"


def test_reachable_goals_have_no_certificate() -> None:
    assert find_certificate(exchange(8, (5, 12, 4))) is None
    assert find_certificate(switches((3, 3, 3), (1, 1, 1), 0)) is None


@pytest.mark.parametrize("seed", range(40))
def test_a_certificate_of_one_problem_does_not_prove_another(seed: int) -> None:
    """Every certificate found for a problem is refused for the same problem with a goal that holds already."""
    world = SmallProblem(seed)
    certificate = find_certificate(world.problem)
    if certificate is None:
        return
    held = replace(world.problem, low=world.problem.start, high=world.problem.start)
    assert not check(held, certificate)


def test_tampered_weights_are_refused() -> None:
    given, _, _ = CASES["weights"]
    certificate = find_certificate(given)
    assert certificate is not None
    assert isinstance(certificate.reason, Weighted)
    for factor in (Fraction(-1), Fraction(0)):
        changed = tuple((row, weight * factor) for row, weight in certificate.reason.weights)
        assert not check(given, Certificate(certificate.reach, Weighted(changed)))
    assert not check(given, Certificate(certificate.reach, None))
    lone = Weighted(certificate.reason.weights[:1])
    assert not check(given, Certificate(certificate.reach, lone))
    whole, _, _ = CASES["parity"]
    proof = find_certificate(whole)
    assert proof is not None
    assert not check(whole, Certificate(proof.reach, Modular((((0, -1), Fraction(1, 3)),))))


@pytest.mark.parametrize("seed", range(50))
def test_integer_elimination_decides(seed: int) -> None:
    """Either weights prove that no whole solution exists, or a solution is found by trying."""
    random = np.random.default_rng(seed)
    matrix, solution = random.integers(-3, 4, (2, 3)), random.integers(-3, 4, 3)
    sides = matrix @ solution if seed % 2 else random.integers(-4, 5, 2)
    weights = fractional_weights(matrix.tolist(), sides.tolist())
    if weights is None:
        return
    assert seed % 2 == 0
    products = [sum(w * int(x) for w, x in zip(weights, column, strict=True)) for column in matrix.T]
    assert all(product.denominator == 1 for product in products)
    assert sum(w * int(b) for w, b in zip(weights, sides, strict=True)).denominator > 1


def test_parities_of_groups_hold_for_every_order() -> None:
    """Problem 1818: mirrorings and turns of a square keep a remainder that the goal does not have."""
    assert [len(parities(Dihedral(n).row())) for n in (1, 2, 3, 4, 5, 6)] == [1, 2, 1, 2, 1, 2]
    assert not is_parity(Dihedral(3).row(), (0, 1, 0, 1, 0, 1))
    world = SmallProblem(1818)
    certificate = find_certificate(world.problem)
    assert certificate is not None
    assert isinstance(certificate.reason, Modular)
    assert "parity of a1" in why(world.problem)
    assert (
        find_plan(world.problem, world.feasible, Limits(nodes=50), rounds=2, budget=10, nodes=1000).status
        is Status.INFEASIBLE
    )
