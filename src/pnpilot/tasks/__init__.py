"""Room: simulated measurements, how x became y. One file, one kind; `base.py` states the contract."""

from .base import TASKS, Setting, Task, build_task

__all__ = ["TASKS", "Setting", "Task", "build_task"]
