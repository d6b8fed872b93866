"""Attributes: blocks with their algebra, and their product."""

from saplan.algebra.base import Block
from saplan.algebra.categorical import Categorical
from saplan.algebra.circle import Circle
from saplan.algebra.cyclic import Cyclic
from saplan.algebra.dihedral import Dihedral
from saplan.algebra.exogenous import Exogenous
from saplan.algebra.homogeneous import Homogeneous
from saplan.algebra.integer import Integer
from saplan.algebra.natural import Natural
from saplan.algebra.product import Delta, Product, Rho
from saplan.algebra.real import Real
from saplan.algebra.rows import CircleRow, GroupRow, LabelRow, LineRow, Row

__all__ = [
    "Block",
    "Categorical",
    "Circle",
    "CircleRow",
    "Cyclic",
    "Delta",
    "Dihedral",
    "Exogenous",
    "GroupRow",
    "Homogeneous",
    "Integer",
    "LabelRow",
    "LineRow",
    "Natural",
    "Product",
    "Real",
    "Rho",
    "Row",
]
