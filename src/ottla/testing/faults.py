"""Scripted faults: which requests a broker fails, delays or cuts off, and how often.

`Fault` is what a test asks for, checked when it is asked for. `FaultScript` is the list of them inside a
broker: it stands between requests and their handlers (`Broker(intercept=script.intercept)`) and does nothing
to a request that no fault is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol import apis, errors
from ottla.protocol.errors import KafkaError
from ottla.protocol.schema import Field, fields_of
from ottla.server.api import SERVED
from ottla.server.context import Context, Disconnect
from ottla.server.routes import Handler, Route
from ottla.testing.refusals import refusal

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3


class UnknownName(ValueError):
    """A fault names an API or an error that does not exist."""


@dataclass(slots=True)
class Fault:
    """What is to happen to which requests. With neither an error nor `cut`, they are only delayed."""

    api: str
    error: str | None = None
    delay_ms: int = 0
    cut: bool = False  # close the connection instead of answering
    handled: bool = False  # only after the request has been carried out
    times: int | None = 1  # None: until it is taken back
    skip: int = 0  # let so many matching requests pass first
    topic: str | None = None
    client_id: str | None = None
    seen: int = 0
    hits: int = 0

    def __post_init__(self) -> None:
        self.api = known_api(self.api)
        if self.error is not None:
            self.error = known_error(self.error).name
        if self.times is not None and self.times < 1:
            raise ValueError(
                f"times is {self.times}: a fault happens at least once, or always with times=None"
            )
        if self.skip < 0 or self.delay_ms < 0:
            raise ValueError("skip and the delay cannot be negative")

    @property
    def is_spent(self) -> bool:
        return self.times is not None and self.hits >= self.times

    def strikes(self) -> bool:
        """Count a request that it is about; whether this is one to spoil."""
        self.seen += 1
        if self.seen <= self.skip:
            return False
        self.hits += 1
        return True


def known_api(name: str) -> str:
    """Kafka's spelling of an API that this broker serves. Raises `UnknownName` with a suggestion."""
    served = {apis.NAMES[key].lower(): apis.NAMES[key] for key in SERVED}
    wanted = name.replace("_", "").lower().removesuffix("request")
    if wanted in served:
        return served[wanted]
    raise UnknownName(f"there is no API {name!r}{_suggestion(wanted, served)}")


def known_error(name: str) -> type[KafkaError]:
    """The error of that name, in Kafka's spelling or the class's. Raises `UnknownName` with a suggestion."""
    known: dict[str, type[KafkaError]] = {}
    spelled: dict[str, str] = {}
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, KafkaError) and each is not KafkaError:
            for spelling in (each.name, each.__name__):
                known[_plain(spelling)] = each
            spelled[_plain(each.name)] = each.name
    wanted = _plain(name)
    if wanted in known:
        return known[wanted]
    raise UnknownName(f"there is no error {name!r}{_suggestion(wanted, spelled)}")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _suggestion(wanted: str, known: dict[str, str]) -> str:
    close = get_close_matches(wanted, list(known), n=1, cutoff=0.6)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


class FaultScript:
    """The faults of one broker, in the order they were asked for. The first that matches a request has it."""

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._next_number = 0

    def add(self, fault: Fault) -> int:
        self._next_number += 1
        self._faults[self._next_number] = fault
        return self._next_number

    def remove(self, number: int | None = None) -> None:
        """Take one fault back, or all of them. How often it struck is still known."""
        for key, fault in self._faults.items():
            if number in (None, key):
                fault.times = fault.hits

    def hits(self) -> dict[int, int]:
        return {number: fault.hits for number, fault in self._faults.items()}

    def intercept(self, route: Route) -> Handler:
        handle = route.handle

        def intercepted(request: Any, context: Context) -> Coroutine[Any, Any, Any]:
            active = [f for f in self._faults.values() if f.api == route.name and not f.is_spent]
            if not active:
                return handle(request, context)
            if route.key == FETCH and request.session_epoch > 0 and any(f.topic or f.error for f in active):
                # A client in a fetch session does not say which partitions it reads. One that is told its
                # session is unknown, as happens to every client now and then, says it again.
                return _forget_session(route)
            for fault in active:
                if _is_about(fault, request, context) and fault.strikes():
                    return _spoiled(fault, route, handle, request, context)
            return handle(request, context)

        return intercepted


async def _forget_session(route: Route) -> Any:
    return route.response_class(error_code=errors.FetchSessionIdNotFound.code)


async def _spoiled(fault: Fault, route: Route, handle: Handler, request: Any, context: Context) -> Any:
    is_one_way = route.key == PRODUCE and request.acks == 0
    if fault.delay_ms:
        _own_records(request)
        await asyncio.sleep(fault.delay_ms / 1000)
    if fault.error is None and not fault.cut:
        return await handle(request, context)
    # Metadata tells clients where the brokers are, without which they could not even retry.
    answer = None
    if fault.handled or (route.key == METADATA and not fault.cut):
        answer = await handle(request, context)
    if fault.cut or is_one_way:
        raise Disconnect(f"a test asked for it: {fault}")
    assert fault.error is not None
    return refusal(route, request, known_error(fault.error), answer)


def _own_records(message: Any) -> None:
    """Records of a request lie in the connection's buffer, which is used again while we wait: copy them."""
    for field in _fields(message):
        value = getattr(message, field.name)
        if field.kind == "records" and value is not None:
            setattr(message, field.name, memoryview(bytearray(value)))
        elif field.kind == "struct" and field.repeated:
            for each in value or ():
                _own_records(each)


def _fields(message: Any) -> tuple[Field, ...]:
    cls: Any = type(message)
    return fields_of(cls)


def _is_about(fault: Fault, request: Any, context: Context) -> bool:
    if fault.client_id is not None and fault.client_id != context.client_id:
        return False
    if fault.topic is None:
        return True
    topic = context.node.image.topics.get(fault.topic)
    named = {fault.topic} if topic is None else {fault.topic, topic.id}
    return any(each in named for each in _names_in(request))


def _names_in(message: Any) -> Iterator[str | Uuid]:
    """Every topic that a request names, by name or id; whatever else is called a name comes along."""
    for field in _fields(message):
        value = getattr(message, field.name)
        if field.kind == "struct" and field.repeated:
            for each in value or ():
                yield from _names_in(each)
        elif field.kind == "str" and field.repeated and "topic" in field.name:
            yield from value or ()
        elif field.name in ("name", "topic", "topic_name", "topic_id") and value not in (None, ZERO_UUID):
            yield value
