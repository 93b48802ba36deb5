"""Tables that compare the methods of a task: what they need besides the task. One file, one table."""

from .base import TABLES, Table, table_of

__all__ = ["TABLES", "Table", "table_of"]
