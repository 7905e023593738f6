"""`ssl.principal.mapping.rules`: how the name in a client's certificate becomes a principal (KIP-371).

    RULE:^CN=(.*?),OU=.*$/$1/L,DEFAULT

The first rule whose pattern fits the whole name makes the principal; DEFAULT takes the name as it is.

Departing from Apache Kafka: a name too long to be one is not held against patterns. With every `.*?` in
a pattern the time that takes grows by another power of the length, in which nobody else is served.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.config.settings import ConfigError

NAME_MAX: Final = 512

_DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(r"\\(?P<escaped>.)|\$(?P<group>\d+)", re.S)


class Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None for DEFAULT
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda found: _group(match, found), self.replacement)


class PrincipalMapping:
    def __init__(self, rules: str) -> None:
        """Raises ConfigError for what is no rule."""
        self._rules = _parsed(rules)

    def name_of(self, distinguished_name: str) -> str | None:
        """The principal's name; None when no rule fits, and the client is to be refused."""
        if len(distinguished_name) > NAME_MAX and any(rule.pattern is not None for rule in self._rules):
            return None
        for rule in self._rules:
            mapped = rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        return None


def _parsed(text: str) -> list[Rule]:
    rules = []
    text = text.strip() or _DEFAULT
    position = 0
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules: {text[position:]} does not begin with DEFAULT or "
                "RULE:pattern/replacement/, followed by L, U or nothing"
            )
        position = found.end()
        if found["default"]:
            rules.append(Rule(None, "", ""))
            continue
        try:
            pattern = re.compile(found["pattern"])
        except re.error as error:
            raise ConfigError(f"ssl.principal.mapping.rules: {found['pattern']}: {error}") from None
        rules.append(Rule(pattern, found["replacement"], found["case"]))
    return rules


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    """What stands for `$12`: group 12, else group 1 and a 2, else, as in Kafka, the letters themselves."""
    if reference["group"] is None:
        return reference["escaped"]
    digits: str = reference["group"]
    for length in range(len(digits), 0, -1):
        number = int(digits[:length])
        if number <= match.re.groups:
            return (match[number] or "") + digits[length:]
    return reference[0]
