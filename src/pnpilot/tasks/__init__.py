"""Room: inverse problems, how x became y. One file, one problem; `base.py` states the contract."""

from .base import TASKS, Setting, Task, build_task, open_problem, simulated

__all__ = ["TASKS", "Setting", "Task", "build_task", "open_problem", "simulated"]
