"""Room: solvers, state → state. One file, one algorithm; `base.py` states the contract."""

from .base import SOLVERS, Solver, build_solver

__all__ = ["SOLVERS", "Solver", "build_solver"]
