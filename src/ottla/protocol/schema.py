"""How a Kafka message is declared: a typed, slotted class whose fields carry version ranges.

    @struct
    class PartitionProduceResponse:
        index: i32 = 0
        log_append_time_ms: i64 = field("2+", default=-1, ignorable=True)

A class is written once and serves every version of its message. Nothing here knows how bytes look; the
codec compiles that from what `fields_of` reports. These classes behave like keyword-only dataclasses but
are not built by `dataclasses`: that costs most of a millisecond per class, and a broker declares hundreds
before it answers its first request. So `__init__` is compiled when the first instance is made.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn, Protocol, TypeVar, dataclass_transform

from ottla.core.files import Buffer
from ottla.core.ids import ZERO_UUID, Uuid

T = TypeVar("T")

# The letter is the one `struct` uses, so that a run of such fields is read by one unpack.
i8 = Annotated[int, "b"]
i16 = Annotated[int, "h"]
i32 = Annotated[int, "i"]
i64 = Annotated[int, "q"]
u16 = Annotated[int, "H"]
u32 = Annotated[int, "I"]
f64 = Annotated[float, "d"]
Records = Annotated[Buffer, "records"]

LATEST = 0x7FFF


class Versions(NamedTuple):
    """An inclusive range, written the way Kafka writes it: "3+", "0-12" or "7"."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text.endswith("+"):
            return cls(int(text[:-1]), LATEST)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last == LATEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALWAYS = Versions(0, LATEST)


class Declared(NamedTuple):
    """What a class body says about one field, beside its type."""

    default: Any
    versions: Versions = ALWAYS
    tag: int | None = None
    nullable: Versions | None = None
    ignorable: bool = False
    compact: bool = True
    secret: bool = False


class Field(NamedTuple):
    """All there is to know about one field: what was declared, and what its annotation means."""

    name: str
    kind: str  # a letter of `struct`, or "bool", "str", "bytes", "uuid", "records", "struct"
    repeated: bool
    struct: Any  # the nested class when kind is "struct"
    nullable: Versions | None
    versions: Versions
    tag: int | None
    default: Any
    ignorable: bool
    compact: bool


class Message(Protocol):
    """What every class made by `@message` has."""

    api_key: ClassVar[int]
    versions: ClassVar[Versions]
    flexible: ClassVar[Versions | None]
    stable: ClassVar[Versions]


def field(
    versions: str = "0+",
    *,
    default: Any,
    tag: int | None = None,
    nullable: str | None = None,
    ignorable: bool = False,
    compact: bool = True,
    secret: bool = False,
) -> Any:
    """A field that some versions lack, or that is encoded in a special way.

    Where it is absent it reads as its default. Writing anything else there is an error, unless the field
    is `ignorable`. `nullable` narrows the versions in which an `X | None` may be null. `compact=False`
    keeps the old length prefix in flexible versions. What is `secret` is not printed.
    """
    null = None if nullable is None else Versions.parse(nullable)
    return Declared(default, Versions.parse(versions), tag, null, ignorable, compact, secret)


class Struct:
    """What `@struct` and `@message` add to a class: equality, a printed form, a compiled `__init__`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __declared__: ClassVar[dict[str, Declared]] = {}

    def __init__(self, /, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = _compile_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.__declared__ is not other.__declared__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__declared__)

    def __repr__(self) -> str:
        shown = (
            f"{name}={'[hidden]' if declared.secret else repr(getattr(self, name))}"
            for name, declared in self.__declared__.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __replace__(self, /, **changes: Any) -> Any:
        kept = {name: getattr(self, name) for name in self.__declared__ if name not in changes}
        return _declaring_class(self)(**kept, **changes)

    def __reduce__(self) -> Any:
        return _rebuild, (_declaring_class(self), {n: getattr(self, n) for n in self.__declared__})


def replace(value: T, **changes: Any) -> T:
    """A copy with some fields changed."""
    return typing.cast(T, typing.cast(Struct, value).__replace__(**changes))


def _rebuild(cls: Any, values: dict[str, Any]) -> Any:
    return cls(**values)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def struct(cls: type[T]) -> type[T]:
    """Something nested in a message."""
    return _declare(cls, {})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(
    *, key: int = -1, versions: str, flexible: str | None = None, unstable_latest: bool = False
) -> Callable[[type[T]], type[T]]:
    """The top of a request, a response or a stored record.

    `key` is the API key, or the type of a stored record. `stable` leaves out a last version that Kafka
    only offers when asked for unstable ones.
    """
    valid = Versions.parse(versions)
    attributes = {
        "api_key": key,
        "versions": valid,
        "flexible": None if flexible is None else Versions.parse(flexible),
        "stable": Versions(valid.first, valid.last - 1) if unstable_latest else valid,
    }
    return lambda cls: _declare(cls, attributes)


def _declare(cls: type[T], attributes: dict[str, Any]) -> type[T]:
    declared = {name: _declared(getattr(cls, name)) for name in cls.__annotations__}
    skip = {"__dict__", "__weakref__", *declared}
    namespace = {name: value for name, value in vars(cls).items() if name not in skip}
    namespace |= {"__slots__": tuple(declared), "__declared__": declared, **attributes}
    return typing.cast("type[T]", type(cls.__name__, (Struct,), namespace))


def _declared(value: Any) -> Declared:
    declared = value if isinstance(value, Declared) else Declared(value)
    if isinstance(declared.default, Struct):
        return declared._replace(default=_freeze(declared.default))
    return declared


def _freeze(value: Struct) -> Struct:
    """The same value, of a class that refuses changes.

    A nested struct's default is shared by every instance that does not set it, which saves building one
    each time and lets the writer recognise it by identity. Changing it would change them all.
    """
    cls = type(value)
    frozen: Any = type(
        cls.__name__, (cls,), {"__slots__": (), "__setattr__": _refuse, "__module__": cls.__module__}
    )
    made = frozen.__new__(frozen)
    for name in cls.__declared__:
        object.__setattr__(made, name, getattr(value, name))
    return typing.cast(Struct, made)


def _refuse(self: Struct, name: str, value: Any) -> NoReturn:
    raise AttributeError(f"this {type(self).__name__} is a shared default; assign a new one instead")


def _declaring_class(value: Struct) -> Any:
    cls = type(value)
    return cls.__base__ if "__setattr__" in vars(cls) else cls


def _compile_init(cls: type[Struct]) -> Any:
    return _compile(cls, "self, ", ())


def maker(cls: type[T]) -> type[T]:
    """A function that makes instances just as calling the class does, at half the cost.

    Python hands keywords to a class through a dict, to a function directly. For hot paths, made once; it has
    the type of the class, so that calls are checked alike.
    """
    made: Any = cls
    return typing.cast("type[T]", _compile(made, "", ("self = new(cls)", "return self")))


def _compile(cls: type[Struct], first: str, around: tuple[str, ...]) -> Any:
    """A function that takes each field by keyword and fills `self`; `around` comes before and after that."""
    scope: dict[str, Any] = {"unset": object(), "new": cls.__new__, "cls": cls}
    parameters, lines = [], []
    for name, declared in cls.__declared__.items():
        if isinstance(declared.default, list):
            parameters.append(f"{name}=unset")
            lines.append(f"self.{name} = [] if {name} is unset else {name}")
        else:
            scope[f"default_{name}"] = declared.default
            parameters.append(f"{name}=default_{name}")
            lines.append(f"self.{name} = {name}")
    signature = f"{first}*, {', '.join(parameters)}" if parameters else first
    body = [*around[:1], *lines, *around[1:]] or ["pass"]
    exec(f"def function({signature}):\n    " + "\n    ".join(body), scope)
    return scope["function"]


@cache
def fields_of(cls: Any) -> tuple[Field, ...]:
    """The fields of a declared class, in the order they are written."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_field(name, hints[name], declared) for name, declared in cls.__declared__.items())


def _field(name: str, hint: Any, declared: Declared) -> Field:
    nullable = None
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint):
        nullable = declared.nullable or declared.versions
        (hint,) = (part for part in typing.get_args(hint) if part is not type(None))
    repeated = typing.get_origin(hint) is list
    if repeated:
        (hint,) = typing.get_args(hint)
    kind, nested = "struct", None
    if typing.get_origin(hint) is Annotated:
        kind = hint.__metadata__[0]
    elif hint in (bool, str, bytes):
        kind = hint.__name__
    elif hint is Uuid:
        kind = "uuid"
    else:
        nested = hint
    return Field(
        name, kind, repeated, nested, nullable, declared.versions, declared.tag,
        declared.default, declared.ignorable, declared.compact,
    )  # fmt: skip


def zero(kind: str) -> Any:
    """The default Kafka gives a field of this kind that names none."""
    return {"bool": False, "str": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID}.get(kind, 0)
