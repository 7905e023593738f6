"""What a comparison of JSON Schemas found, and the messages that say so."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.registry.formats.json_schema_changes import INCOMPATIBLE, Change

# Messages are for people; a schema with more differences than this has one for each of the first.
MAX_MESSAGES = 100
MAX_PATH_CHARACTERS = 1000
MAX_NAME_CHARACTERS = 250


def part(keyword: str, name: str) -> str:
    """A part of a path: a name below a keyword. Names are kept with every pair they were found in: short."""
    return f"{keyword}/{name if len(name) <= MAX_NAME_CHARACTERS else name[:MAX_NAME_CHARACTERS] + '...'}"


class Differences:
    """What was found of a pair of subschemas: changes, and what was found of pairs inside of them, at paths.

    Inner pairs are kept by reference and not copied: a pair that is shared may be reached by exponentially
    many paths."""

    __slots__ = ("_found", "compatible")

    def __init__(self) -> None:
        self._found: list[tuple[str, Change | Differences]] = []
        self.compatible = True

    def add(self, change: Change, path: str = "") -> None:
        self._found.append((path, change))
        if change in INCOMPATIBLE:
            self.compatible = False

    def include(self, inner: Differences, path: str = "") -> None:
        if inner._found:
            self._found.append((path, inner))
        self.compatible = self.compatible and inner.compatible

    def changes(self) -> Iterator[tuple[Change, str]]:
        """All changes, with their paths. For small schemas: there may be very many."""
        return self._walk(incompatible_only=False)

    def messages(self) -> list[str]:
        """The first of the changes that are not compatible, in words."""
        told: list[str] = []
        for change, path in self._walk(incompatible_only=True):
            told.append(
                f'{{errorType:"{change.name}", description:"{INCOMPATIBLE[change]}, at path \'{path}\'"}}'
            )
            if len(told) == MAX_MESSAGES:
                break
        return told

    def _walk(self, *, incompatible_only: bool) -> Iterator[tuple[Change, str]]:
        pending: list[tuple[Iterator[tuple[str, Change | Differences]], str]] = [(iter(self._found), "#/")]
        while pending:
            found, prefix = pending[-1]
            for part, each in found:
                path = prefix + part if prefix == "#/" or not part else f"{prefix}/{part}"
                if isinstance(each, Change):
                    if not incompatible_only or each in INCOMPATIBLE:
                        yield each, path
                elif not incompatible_only or not each.compatible:
                    # A path so long serves nobody, and making it longer step by step takes quadratic time.
                    cut = path if len(path) <= MAX_PATH_CHARACTERS else f"{path[:MAX_PATH_CHARACTERS]}..."
                    pending.append((iter(each._found), cut))
                    break
            else:
                pending.pop()
