"""Lines of Python that the codec writes, and the function they become."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# What `struct` reads and writes at a fixed width, beside a Uuid's sixteen bytes.
WIDTHS = {"b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8}


class Source:
    """The text of one function, the globals it refers to, and names nobody else uses."""

    def __init__(self, **given: Any) -> None:
        self.lines: list[str] = []
        self.globals = given
        self._names = 0
        self._constants: dict[tuple[type, Any], str] = {}

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """A global that holds this value; the same one when asked again for the same value."""
        key = (type(value), value if value.__hash__ is not None else id(value))
        if key not in self._constants:
            self._constants[key] = name = self.name(stem)
            self.globals[name] = value
        return self._constants[key]

    def literal(self, value: Any) -> str:
        """How the text says a default: in place where that is shorter to run, else by a global's name."""
        if isinstance(value, list):
            return "[]"
        if value is None or type(value) in (bool, int, float, str, bytes):
            return repr(value)
        return self.constant("default", value)

    def build(self, title: str) -> Any:
        """The function called `codec` in the text; the text stays on it as `__source__`."""
        text = "\n".join(self.lines) + "\n"
        exec(compile(text, f"<{title}>", "exec"), self.globals)
        function = self.globals["codec"]
        function.__source__ = text
        return function


def targets(names: Iterable[str]) -> str:
    """The left side of an assignment from a tuple."""
    return ", ".join(names) + ","
