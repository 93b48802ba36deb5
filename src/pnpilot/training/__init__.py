"""Room: making weights. Functions from a dataclass of arguments to a result; no trainer class."""
