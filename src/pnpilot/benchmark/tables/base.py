"""What a table of a task is: only data. A task without a file here gets the default table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...baselines import BASELINES
from ...registry import Registry
from ...tasks import TASKS, Task

Numbers = Mapping[str, Mapping[str, Mapping[str, float]]]
"""PSNR in dB by test set, setting and method."""


class Table:
    """Base of all tables, registered by the name of their task; the defaults serve any task."""

    name: str
    title: str
    datasets: Sequence[str] = ("set12",)
    """Its test sets."""
    order: Sequence[str] = ()
    """Which baselines come first, in this order; others for the task come after these, and ours last."""
    published: Numbers = {}
    """What the paper printed."""
    notes: Mapping[str, str] = {}
    """Remarks on the paper's numbers, by test set, each the end of a sentence."""
    seeds: int = 1
    """How many seeds to average over by default."""
    draws: int | None = None
    """How often operators are drawn for each seed of noise; None: a seed draws both at once."""

    def baselines(self) -> list[str]:
        """The baselines that serve the task, in the order of the table."""
        others = sorted(name for name in BASELINES if self.name in BASELINES[name].serves and name not in self.order)
        return [*self.order, *others]

    def paper(self, dataset: str, setting: str, method: str) -> float | None:
        """The paper's number for a cell, if it has one."""
        return self.published.get(dataset, {}).get(setting, {}).get(method)


TABLES: Registry[Table] = Registry("table", __package__)


def table_of(task: Task) -> Table:
    """The table of a task: its own, or the default one under the task's name."""
    if task.name in TABLES:
        return TABLES[task.name]()
    table = Table()
    table.name, table.title = task.name, TASKS.summary(task.name).split(":")[0].rstrip(".")
    return table
