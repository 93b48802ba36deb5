"""Options of a command from the fields of its dataclasses of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer


def with_options(*kinds: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give the decorated command an option per field of these dataclasses.

    The command is called with an object of each class, then by name with the options that it declares itself. A field
    that is a dataclass stands for its own fields; a field that several classes share is one option.
    """
    options = {field.name: _option(field, hint) for kind in kinds for field, hint in _flat(kind)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[len(kinds) :]

        def run(**given: Any) -> None:
            objects = [_built(kind, given) for kind in kinds]
            command(*objects, **{parameter.name: given[parameter.name] for parameter in own})

        parameters = [
            *options.values(),
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
        ]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _flat(kind: type) -> Iterator[tuple[Field[Any], Any]]:
    """Fields with their types."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            yield from _flat(hints[field.name])
        else:
            yield field, hints[field.name]


def _option(field: Field[Any], hint: Any) -> inspect.Parameter:
    about = field.metadata
    if about["argument"]:
        details: Any = typer.Argument(help=about["help"])
    else:
        details = typer.Option(help=about["help"], min=about["low"], max=about["high"], rich_help_panel=about["group"])
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, details]
    )


def _built(kind: type, given: dict[str, Any]) -> Any:
    """The dataclass with what was given for its fields."""
    hints = get_type_hints(kind)
    return kind(
        **{
            field.name: _built(hints[field.name], given) if is_dataclass(hints[field.name]) else given[field.name]
            for field in fields(kind)
        }
    )
