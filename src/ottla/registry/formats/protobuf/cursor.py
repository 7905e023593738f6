"""A walk over the words of .proto text, and the small pieces that every declaration is made of."""

from __future__ import annotations

from typing import NoReturn

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.syntax import Aggregate, NamePart, Number, Option, Value, Word
from ottla.registry.formats.protobuf.tokens import Kind, Position, Token, string_bytes, tokens

# What protoc takes: deeper nesting is refused there, too.
DEEPEST = 32
# Names are looked up in every scope around them: without a bound that would take time squared.
_LONGEST_NAME = 1_000


class Cursor:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self.token = next(self._tokens)
        self._following = next(self._tokens, self.token)
        self._depth = 0

    @property
    def where(self) -> Position:
        return self.token.where

    def fail(self, wanted: str) -> NoReturn:
        raise InvalidSchema(f"expected {wanted}, found {self.token} at {self.where}")

    def next(self) -> Token:
        token = self.token
        self.token = self._following
        self._following = next(self._tokens, self._following)
        return token

    def is_at(self, *words: str) -> bool:
        return self.token.text in words and self.token.kind is not Kind.STRING

    def is_before(self, *words: str) -> bool:
        """Whether the word after the present one is one of these."""
        return self._following.text in words

    def skip(self, word: str) -> bool:
        if self.is_at(word):
            self.next()
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.skip(word):
            self.fail(f'"{word}"')

    def enter(self) -> None:
        """A level deeper; `leave` once it is read."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidSchema(f"nested deeper than {DEEPEST} levels at {self.where}")

    def leave(self) -> None:
        self._depth -= 1

    def identifier(self) -> str:
        if self.token.kind is not Kind.IDENTIFIER:
            self.fail("a name")
        if len(self.token.text) > _LONGEST_NAME:
            raise InvalidSchema(f"a name longer than {_LONGEST_NAME} characters at {self.where}")
        return self.next().text

    def dotted_name(self) -> str:
        """Names with dots between them, and perhaps one before."""
        where = self.where
        parts = ["" if self.skip(".") else None, self.identifier()]
        length = 0
        while self.skip("."):
            parts.append(self.identifier())
            length += len(parts[-1] or "") + 1
            if length > _LONGEST_NAME:
                raise InvalidSchema(f"a name longer than {_LONGEST_NAME} characters at {where}")
        return ".".join(part for part in parts if part is not None)

    def string(self) -> bytes:
        """Strings that follow each other are one."""
        if self.token.kind is not Kind.STRING:
            self.fail("a string")
        parts = []
        while self.token.kind is Kind.STRING:
            parts.append(string_bytes(self.next()))
        return b"".join(parts)

    def text(self) -> str:
        where = self.where
        try:
            return self.string().decode()
        except UnicodeDecodeError:
            raise InvalidSchema(f"the string at {where} is no text") from None

    def integer(self, lowest: int, largest: int) -> int:
        where = self.where
        negative = self.skip("-")
        if self.token.kind is not Kind.INTEGER:
            self.fail("a number")
        number = integer_value(self.next().text) * (-1 if negative else 1)
        if not lowest <= number <= largest:
            raise InvalidSchema(f"{number} is not between {lowest} and {largest}, at {where}")
        return number

    def option(self) -> Option:
        """name = value"""
        where = self.where
        parts = [self._name_part()]
        while self.skip("."):
            parts.append(self._name_part())
            if len(parts) > DEEPEST:
                raise InvalidSchema(f"an option's name of more than {DEEPEST} parts at {where}")
        self.expect("=")
        return Option(tuple(parts), self._value(), where)

    def options_in_brackets(self) -> list[Option]:
        """[name = value, ...], or nothing."""
        options: list[Option] = []
        if self.skip("["):
            options.append(self.option())
            while self.skip(","):
                options.append(self.option())
            self.expect("]")
        return options

    def _name_part(self) -> NamePart:
        if self.skip("("):
            name = self.dotted_name()
            self.expect(")")
            return NamePart(name, True)
        return NamePart(self.identifier(), False)

    def _value(self) -> Value:
        if self.is_at("{", "<"):
            return self._aggregate()
        if self.skip("["):
            self.enter()
            values: list[Value] = []
            while not self.skip("]"):
                values.append(self._value())
                if not self.skip(",") and not self.is_at("]"):
                    self.fail('"," or "]"')
            self.leave()
            return values
        if self.token.kind is Kind.STRING:
            return self.string()
        sign = ""
        if self.is_at("-", "+"):
            sign = self.next().text.replace("+", "")
        if self.token.kind in (Kind.INTEGER, Kind.FLOAT):
            return Number(sign + self.next().text)
        if self.token.kind is Kind.IDENTIFIER and (not sign or self.is_at("inf", "nan")):
            return Word(sign + self.next().text)
        self.fail("a value")

    def _aggregate(self) -> Aggregate:
        """{ name: value, name { ... } ... }: protobuf's text format."""
        self.enter()
        end = "}" if self.next().text == "{" else ">"
        entries: list[tuple[str, Value]] = []
        while not self.skip(end):
            name = self._entry_name()
            if not self.skip(":") and not self.is_at("{", "<", "["):
                self.fail('":"')
            entries.append((name, self._value()))
            if not self.skip(","):
                self.skip(";")
        self.leave()
        return Aggregate(entries)

    def _entry_name(self) -> str:
        if not self.skip("["):
            return self.identifier()
        name = self.dotted_name()
        if self.skip("/"):
            name += "/" + self.dotted_name()
        self.expect("]")
        return f"[{name}]"


def integer_value(text: str) -> int:
    """A decimal, octal or hexadecimal number without its sign."""
    try:
        if text[:2] in ("0x", "0X"):
            return int(text, 16)
        return int(text, 8) if len(text) > 1 and text.startswith("0") else int(text)
    except ValueError:
        raise InvalidSchema(f"{text} is no number") from None
