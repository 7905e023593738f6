"""JAAS text, in which Kafka writes the names and passwords of its login modules.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="hidden";

It is read as Java reads it: words, values in quotes of either kind with escapes, comments of both kinds. No
error repeats what was written, since that may be a password.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.config.settings import ConfigError

FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>[A-Za-z0-9._$\u00a0-\uffff-]+)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<sign>[=;])""",
    re.S | re.X,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.S)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    """One entry: the Java class that would be run, and what it is told."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {len(self.options)} options)"


def parse_jaas(text: str) -> list[LoginModule]:
    """The login modules of a `sasl.jaas.config`. Raises ConfigError with one line that shows no secret."""
    tokens = _tokens(text)
    modules = []
    while tokens:
        modules.append(_module(tokens))
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    return modules


def _tokens(text: str) -> list[tuple[str, str]]:
    """What the text consists of, the last first: a sign is itself, anything else a `text`."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConfigError(f"JAAS config cannot be read from character {position + 1} on")
        position = match.end()
        if match["sign"]:
            tokens.append((match["sign"], ""))
        elif match["word"]:
            tokens.append(("text", match["word"]))
        elif not match["space"]:
            quoted = match["single"] if match["double"] is None else match["double"]
            tokens.append(("text", _ESCAPE.sub(_unescaped, quoted)))
    tokens.reverse()
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped.isdigit() and escaped < "8" else _ESCAPED.get(escaped, escaped)


def _module(tokens: list[tuple[str, str]]) -> LoginModule:
    _, name = tokens.pop()
    if not tokens:
        raise ConfigError("Login module control flag not specified in JAAS config")
    _, flag = tokens.pop()
    if not name or flag.lower() not in FLAGS:
        raise ConfigError(f"JAAS config should begin with a login module and one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while tokens:
        kind, option = tokens.pop()
        if kind == ";":
            return LoginModule(name, options)
        if kind != "text" or len(tokens) < 2 or tokens.pop()[0] != "=" or tokens[-1][0] != "text":
            # Kafka names the key, which is a part of a password where one has blanks and no quotes.
            raise ConfigError("Value not specified for a key in JAAS config: values with blanks need quotes")
        options[option] = tokens.pop()[1]
    raise ConfigError("JAAS config entry not terminated by semi-colon")
