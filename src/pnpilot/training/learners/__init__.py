"""Room: learners, which train a policy's network. One file, one learner; `base.py` states the contract."""

from .base import LEARNERS, Learner

__all__ = ["LEARNERS", "Learner"]
