"""Settings: declared once, parsed once, frozen after that.

A class decorated with `@settings` declares its properties as annotated attributes:
`segment_bytes` in code is `segment.bytes` in a file. `load` turns text into such an object at
the edge of the program; from there on a setting is a plain attribute of a plain value. The same
declarations feed DescribeConfigs, the reference page and the checks of AlterConfigs.

Constructing a settings class directly takes typed values and checks nothing, which is what
tests and callers with known values want. Only text is checked, with Apache Kafka's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeVar, cast, dataclass_transform

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

T = TypeVar("T")

Live = Literal["no", "broker", "cluster"]
"""Whether a broker property can change while running: not, per broker, or cluster wide as well."""


class ConfigError(ValueError):
    """A property is unknown, malformed or contradicts another; the text is one clear line."""


class InvalidChange(ConfigError):
    """A change that makes no sense as asked; Kafka answers INVALID_REQUEST, not INVALID_CONFIG."""


class Kind(IntEnum):
    """The types of DescribeConfigs, with their codes on the wire."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_INTEGER_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}

_KIND_OF_ANNOTATION = {
    "bool": Kind.BOOLEAN,
    "str": Kind.STRING,
    "int": Kind.INT,
    "float": Kind.DOUBLE,
    "tuple[str, ...]": Kind.LIST,
    "frozenset[str]": Kind.LIST,
}


class Setting(NamedTuple):
    """One declared property."""

    name: str
    attribute: str
    kind: Kind
    default: Any
    about: str
    at_least: float | None
    at_most: float | None
    choices: tuple[str, ...]
    any_case: bool
    may_be_empty: bool
    check: Callable[[Any], str | None] | None
    live: Live
    internal: bool
    required_by_kafka: bool
    synonyms: tuple[str, ...]
    unordered: bool

    @property
    def sensitive(self) -> bool:
        """Never shown to anyone."""
        return self.kind is Kind.PASSWORD

    @property
    def default_text(self) -> str | None:
        """The default as DescribeConfigs shows it."""
        return text_of(self.kind, self.default)

    def parse(self, text: str) -> Any:
        """The typed value of a text. Raises ConfigError with the message Apache Kafka gives."""
        value = self._parse(text)
        reason = self._reason_against(value)
        if reason is None and self.check is not None:
            reason = self.check(value)
        if reason is not None:
            raise self._refused(text_of(self.kind, value), reason)
        return frozenset(value) if self.unordered else value

    def normal(self, text: str) -> str | None:
        """The text as DescribeConfigs shows it once parsed: `" 5 "` is `"5"`."""
        return text_of(self.kind, self._parse(text))

    def _parse(self, text: str) -> Any:
        stripped = text.strip()
        match self.kind:
            case Kind.BOOLEAN:
                lowered = stripped.lower()
                if lowered not in ("true", "false"):
                    raise self._refused(text, "Expected value to be either true or false")
                return lowered == "true"
            case Kind.INT | Kind.SHORT | Kind.LONG:
                value = _integer(stripped, _INTEGER_BITS[self.kind])
                if value is None:
                    raise self._refused(text, f"Not a number of type {self.kind.name}")
                return value
            case Kind.DOUBLE:
                number = _double(stripped)
                if number is None:
                    raise self._refused(text, "Not a number of type DOUBLE")
                return number
            case Kind.LIST:
                # Kafka drops what is named twice, keeping the first.
                return tuple(dict.fromkeys(part.strip() for part in stripped.split(","))) if stripped else ()
            case _:
                return stripped

    def _reason_against(self, value: Any) -> str | None:
        if self.kind is Kind.LIST:
            return self._list_reason(value)
        if self.at_least is not None and value < self.at_least:
            return f"Value must be at least {self.at_least}"
        if self.at_most is not None and value > self.at_most:
            return f"Value must be no more than {self.at_most}"
        if self.choices:
            if self.any_case:
                if value.upper() not in self.choices:
                    return f"String must be one of (case insensitive): {', '.join(self.choices)}"
            elif value not in self.choices:
                return f"String must be one of: {', '.join(self.choices)}"
        if not self.may_be_empty and value == "":
            return "String must be non-empty"
        return None

    def _list_reason(self, values: tuple[str, ...]) -> str | None:
        if not values and not self.may_be_empty:
            valid = f"[{', '.join(self.choices)}]" if self.choices else "any non-empty value"
            raise ConfigError(f"Configuration '{self.name}' must not be empty. Valid values include: {valid}")
        for value in values:
            if not value:
                raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
            if self.choices and value not in self.choices:
                raise self._refused(value, f"String must be one of: {', '.join(self.choices)}")
        return None

    def _refused(self, value: object, reason: str) -> ConfigError:
        shown = "[hidden]" if self.sensitive else value
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {reason}")


def setting(
    default: T,
    *,
    about: str,
    kind: Kind | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
    any_case: bool = False,
    may_be_empty: bool = True,
    check: Callable[[Any], str | None] | None = None,
    live: Live = "no",
    internal: bool = False,
    required_by_kafka: bool = False,
    synonyms: tuple[str, ...] = (),
    name: str = "",
) -> T:
    """Declare one property of a settings class.

    The kind follows from the annotation (`int` is INT) unless it is given. `check` returns the
    reason a value is refused. `synonyms` are the broker properties that can set this one, the
    strongest first. `internal` properties work but are not described. `required_by_kafka` marks
    a property that has a default here and none in Apache Kafka.
    """
    declared = Setting(
        name=name,
        attribute="",
        kind=Kind.UNKNOWN if kind is None else kind,
        default=default,
        about=about,
        at_least=at_least,
        at_most=at_most,
        choices=choices,
        any_case=any_case,
        may_be_empty=may_be_empty,
        check=check,
        live=live,
        internal=internal,
        required_by_kafka=required_by_kafka,
        synonyms=synonyms,
        unordered=False,
    )
    # The annotation wants the value's type; `settings` puts the default in its place.
    return cast(T, declared)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a settings class: frozen, compared by value, built from keywords.

    Not a dataclass: writing the methods of one with hundreds of fields takes tens of
    milliseconds at every start of the process.
    """
    declared: dict[str, Setting] = {}
    for base in reversed(cls.__mro__[1:]):
        declared.update(base.__dict__.get("__settings__", {}))
    for attribute, annotation in cls.__annotations__.items():
        written = cls.__dict__.get(attribute)
        assert isinstance(written, Setting), f"{cls.__name__}.{attribute} is not declared with setting()"
        plain = annotation.removesuffix(" | None")
        declared_as = written._replace(
            name=written.name or attribute.replace("_", "."),
            attribute=attribute,
            kind=written.kind or _KIND_OF_ANNOTATION[plain],
            unordered=plain == "frozenset[str]",
        )
        declared[declared_as.name] = declared_as
        setattr(cls, attribute, written.default)
    defaults = {each.attribute: each.default for each in declared.values()}
    secret = {each.attribute for each in declared.values() if each.sensitive}

    def initialise(self: Any, **values: Any) -> None:
        if values:
            strangers = values.keys() - defaults.keys()
            if strangers:
                raise TypeError(f"{cls.__name__} has no setting {', '.join(sorted(strangers))}")
        object.__setattr__(self, "__dict__", {**defaults, **values})

    def refuse(self: Any, attribute: str, value: object = None) -> None:
        raise AttributeError(f"{cls.__name__} is frozen: cannot change {attribute}")

    def equal(self: Any, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is cls else NotImplemented

    def represent(self: Any) -> str:
        different = (
            f"{k}={'[hidden]' if k in secret else repr(v)}"
            for k, v in self.__dict__.items()
            if v != defaults[k]
        )
        return f"{cls.__name__}({', '.join(different)})"

    methods = {
        "__settings__": declared,
        "__init__": initialise,
        "__setattr__": refuse,
        "__delattr__": refuse,
        "__eq__": equal,
        "__hash__": lambda self: hash(tuple(self.__dict__.values())),
        "__repr__": represent,
    }
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def declared(cls: type) -> Mapping[str, Setting]:
    """The properties a settings class declares, by name."""
    return cast(Mapping[str, Setting], cls.__dict__["__settings__"])


def replace(current: T, **changes: object) -> T:
    """The same settings with some typed values changed."""
    values = {**current.__dict__, **changes}
    return type(current)(**values)


def load(cls: type[T], text: Mapping[str, str]) -> T:
    """Parse properties into a settings object. Unknown names are refused with a suggestion."""
    known = declared(cls)
    values: dict[str, Any] = {}
    for name, value in text.items():
        each = known.get(name)
        if each is None:
            raise unknown(name, known)
        values[each.attribute] = each.parse(value)
    return cls(**values)


def unknown(name: str, known: Iterable[str], what: str = "property") -> ConfigError:
    """The error for a name nobody declared, with the closest name somebody did."""
    # Imported here: it is only needed on the way out.
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigError(f"unknown {what} {name}{hint}")


def text_of(kind: Kind, value: Any) -> str | None:
    """A typed value as text, as Apache Kafka writes it."""
    if value is None:
        return None
    match kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DOUBLE:
            return _double_text(value)
        case Kind.LIST:
            return ",".join(sorted(value) if isinstance(value, frozenset) else value)
        case _:
            return str(value)


def _integer(text: str, bits: int) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Eagerly bounded: int() of a hostile text of many digits is slow.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 40:
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _double(text: str) -> float | None:
    if "_" in text or len(text) > 400:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    # Java would take NaN and Infinity; nothing sensible could be done with either.
    return value if abs(value) < float("inf") else None


def _double_text(value: float) -> str:
    """A float as Java writes it: 0.5, 1.0E8, 1.7976931348623157E308."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, _, exponent = f"{value!r}".lower().partition("e")
    if not exponent:
        # repr writes plain digits up to 1e16 and down to 1e-4.
        sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
        whole, _, fraction = digits.partition(".")
        significant = (whole + fraction).lstrip("0")
        power = len(whole.lstrip("0")) - 1 if whole.strip("0") else len(significant) - len(fraction) - 1
        significant = significant.rstrip("0") or "0"
        return f"{sign}{significant[0]}.{significant[1:] or '0'}E{power}"
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"
