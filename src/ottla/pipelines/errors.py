"""What a pipeline says when it cannot go on: one line that names what is wrong and what to do."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class PipelineError(Exception):
    """The project, a flow or its surroundings cannot be used as they are."""


def require(module: str, extra: str) -> ModuleType:
    """The module, or a line that says which extra of Ottla brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # A module that is there but misses something of its own is another matter, and keeps its own words.
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise PipelineError(
            f"{module.split('.')[0]} is not installed; run: pip install 'ottla[{extra}]'"
        ) from None
