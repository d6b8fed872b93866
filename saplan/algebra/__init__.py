"""Attributes: blocks with their algebra, and their product."""

from saplan.algebra.base import Block
from saplan.algebra.categorical import Categorical
from saplan.algebra.cyclic import Cyclic
from saplan.algebra.exogenous import Exogenous
from saplan.algebra.integer import Integer
from saplan.algebra.natural import Natural
from saplan.algebra.product import Delta, Product, Rho
from saplan.algebra.real import Real
from saplan.algebra.rows import Circle, Labels, Line, Row

__all__ = [
    "Block",
    "Categorical",
    "Circle",
    "Cyclic",
    "Delta",
    "Exogenous",
    "Integer",
    "Labels",
    "Line",
    "Natural",
    "Product",
    "Real",
    "Rho",
    "Row",
]
