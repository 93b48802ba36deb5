"""Room: inverse problems as solvers see them. One file, one kind; `base.py` states the contract."""

from ._units import Hints, Units
from .base import PROBLEMS, Problem, open_problem

__all__ = ["PROBLEMS", "Hints", "Problem", "Units", "open_problem"]
