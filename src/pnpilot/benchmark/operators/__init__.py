"""Room: operators of the benchmark, everything fixed. One file, one operator; `base.py` states the contract."""

from .base import OPERATORS, Drawn, Operator, build_operator, conditions, in_order

__all__ = ["OPERATORS", "Drawn", "Operator", "build_operator", "conditions", "in_order"]
