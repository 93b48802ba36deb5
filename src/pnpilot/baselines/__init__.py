"""Room: other people's methods, y → x. One file, one method; `base.py` states the contract."""

from .base import BASELINES, Answer, Baseline, build_baseline

__all__ = ["BASELINES", "Answer", "Baseline", "build_baseline"]
