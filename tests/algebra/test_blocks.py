"""How blocks are made: every class abstract or final, and bad parameters refused."""

import inspect
import math
from collections.abc import Callable, Iterator

import pytest

from saplan.algebra import Block, Categorical, Cyclic, Natural, Product, Real
from saplan.errors import InputError

from .samples import BLOCKS, labels


def descendants(kind: type[object]) -> Iterator[type[object]]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


def test_every_block_is_abstract_or_final() -> None:
    found = [kind for kind in descendants(Block) if kind.__module__.startswith("saplan.algebra.")]
    finals = {kind.__name__ for kind in found if getattr(kind, "__final__", False)}
    assert finals == {
        "Natural",
        "Integer",
        "Cyclic",
        "Real",
        "Circle",
        "Dihedral",
        "Categorical",
        "Exogenous",
        "Homogeneous",
    }
    assert len(finals - {"Exogenous", "Homogeneous"}) == len(BLOCKS), "those have laws of their own"
    for kind in found:
        final = getattr(kind, "__final__", False)
        assert final != inspect.isabstract(kind), f"{kind.__name__} must be either abstract or final"
        heirs = [heir for heir in kind.__subclasses__() if heir.__module__.startswith("saplan.algebra.")]
        assert not (final and heirs), f"{kind.__name__} is final but has subclasses"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cyclic(0),
        lambda: Cyclic(-3),
        lambda: Cyclic(2**24 + 1),
        lambda: Real(resolution=0),
        lambda: Real(resolution=-1.0),
        lambda: Real(resolution=math.nan),
        lambda: Real(resolution=math.inf),
        lambda: Real(low=1.0, high=1.0),
        lambda: Real(low=math.nan),
        lambda: Categorical(()),
        lambda: Categorical(("a", "b", "a")),
        lambda: Categorical(labels(4097)),
        lambda: Product((), ()),
        lambda: Product(("a",), (Natural(), Natural())),
        lambda: Product(("a", "a"), (Natural(), Natural())),
        lambda: Product(("a b",), (Natural(),)),
        lambda: Product(("a=b",), (Natural(),)),
        lambda: Product(("",), (Natural(),)),
    ],
)
def test_bad_parameters_are_refused_in_one_line(make: Callable[[], object]) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["16777217", "-1", "1.5", "nan", "inf", "-inf", "", "1e300", "two"])
def test_counts_refuse(text: str) -> None:
    with pytest.raises(InputError):
        Natural().parse(text)


def test_categories_suggest_the_nearest_label() -> None:
    with pytest.raises(InputError, match="did you mean 'purple'"):
        Categorical(("purple", "green")).parse("purpel")


def test_blocks_are_static_values() -> None:
    assert Cyclic(3) == Cyclic(3) != Cyclic(4)
    assert hash(Real(0.5)) == hash(Real(0.5))
    assert Natural() != Natural(bins=2)
