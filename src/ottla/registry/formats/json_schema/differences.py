"""What a comparison of JSON Schemas found, and the messages that say so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ottla.registry.formats.json_schema.changes import INCOMPATIBLE, Change

# Messages are for people; a schema with more differences than this has one for each of the first.
MAX_MESSAGES = 100
MAX_PATH_CHARACTERS = 1000


class Differences:
    """What was found of a pair of subschemas: changes, and what was found of pairs inside of them, each at a
    path of a keyword and a name below it. Of interest is what is not compatible; all else is kept on demand.

    Inner pairs are kept by reference and not copied: a pair that is shared may be reached by exponentially
    many paths. Nor are paths made before they are told."""

    __slots__ = ("_everything", "_found", "compatible")

    def __init__(self, *, everything: bool = False) -> None:
        self._found: list[tuple[Change | Differences, str, str | None]] = []
        self._everything = everything
        self.compatible = True

    def add(self, change: Change, keyword: str = "", name: str | None = None) -> None:
        if change in INCOMPATIBLE:
            self.compatible = False
        elif not self._everything:
            return
        self._found.append((change, keyword, name))

    def include(self, inner: Differences, keyword: str = "", name: str | None = None) -> None:
        self.compatible = self.compatible and inner.compatible
        if inner._found:
            self._found.append((inner, keyword, name))

    def changes(self) -> Iterator[tuple[Change, str]]:
        """The changes, with their paths."""
        pending = [(iter(self._found), "#/")]
        while pending:
            found, prefix = pending[-1]
            for each, keyword, name in found:
                path = prefix + keyword if prefix == "#/" or not keyword else f"{prefix}/{keyword}"
                path = path if name is None else f"{path}/{name}"
                if isinstance(each, Change):
                    yield each, path
                    continue
                # A path so long serves nobody, and making it longer step by step takes quadratic time.
                cut = path if len(path) <= MAX_PATH_CHARACTERS else f"{path[:MAX_PATH_CHARACTERS]}..."
                pending.append((iter(each._found), cut))
                break
            else:
                pending.pop()

    def messages(self) -> list[str]:
        """The first of the changes that are not compatible, in words."""
        told = []
        for change, path in islice(self.changes(), MAX_MESSAGES):
            why, path = INCOMPATIBLE[change], path[: MAX_PATH_CHARACTERS + 1]
            told.append(f'{{errorType:"{change.name}", description:"{why}, at path \'{path}\'"}}')
        return told
