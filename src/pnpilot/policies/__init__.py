"""Room: policies, state → action. One file, one kind of policy; `base.py` states the contract."""

from .base import POLICIES, Policy, build_policy

__all__ = ["POLICIES", "Policy", "build_policy"]
