"""Whether the name of a property matches a pattern of `patternProperties`.

The pattern and the name both come from a schema, and so from anybody: Python's `re` would take exponential
time for some. Here all alternatives are followed side by side, so time is at most the length of the pattern
times that of the name. Patterns mean what they mean in Java, with which Confluent's registry reads them.

What cannot be decided this way matches nothing: look-arounds, back references, possessive quantifiers and
flags."""

from __future__ import annotations

from ottla.registry.formats.json_schema.pattern_parser import LINE_ENDS, Parser, Step, Undecided

MAX_NAME = 500


class Pattern:
    """A pattern as steps, the first of which is where it begins."""

    def __init__(self, text: str) -> None:
        parser = Parser(text)
        self.steps: list[Step] = parser.steps
        self.start = parser.parse()

    def found_in(self, name: str) -> bool:
        if len(name) > MAX_NAME:
            return False
        current: set[int] = set()
        for at in range(len(name) + 1):
            current.add(self.start)
            current, ended = self._reachable(current, name, at)
            if ended:
                return True
            if at < len(name):
                taken = set()
                for step in current:
                    test = self.steps[step][1]
                    if callable(test) and test(name[at]):
                        taken.add(self.steps[step][2])
                current = taken
        return False

    def _reachable(self, begun: set[int], name: str, at: int) -> tuple[set[int], bool]:
        """The steps that take a character, of those reached without one, and whether one is the end."""
        pending, seen = list(begun), set(begun)
        takers: set[int] = set()
        while pending:
            step = pending.pop()
            what, detail, first, second = self.steps[step]
            if what == "end":
                return takers, True
            if what == "take":
                takers.add(step)
                continue
            if what == "at" and not _holds(str(detail), name, at):
                continue
            for following in (first, second):
                if following >= 0 and following not in seen:
                    seen.add(following)
                    pending.append(following)
        return takers, False


def compiled(text: str) -> Pattern | None:
    """The pattern of a text, or None if it is not one that is understood."""
    try:
        return Pattern(text)
    except Undecided:
        return None


def _holds(what: str, name: str, at: int) -> bool:
    match what:
        case "^":
            return at == 0
        case "z":
            return at == len(name)
        case "$":
            return at == len(name) or (at == len(name) - 1 and name[at] in LINE_ENDS) or name[at:] == "\r\n"
    before = at > 0 and _is_word(name[at - 1])
    after = at < len(name) and _is_word(name[at])
    return (before != after) == (what == "b")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
