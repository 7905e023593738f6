"""From an API key and version to the functions that read, handle and answer it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final

from ottla.core.files import Buffer
from ottla.protocol import apis, codec, headers
from ottla.protocol.schema import fields_of
from ottla.server.api import SERVED, Served
from ottla.server.context import Context

# Upper bounds, in seconds, of the times that `Route.waited` tells apart.
WAIT_BUCKETS: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)

Handler = Callable[[Any, Context], Coroutine[Any, Any, Any]]
# What stands between a route and its handler: it is given the route and answers what is called in its place.
Intercept = Callable[["Route"], Handler]


class Route:
    """Everything one (API, version) needs, found by a single dictionary lookup per request."""

    __slots__ = (
        "carries_records",
        "handle",
        "is_flexible",
        "key",
        "name",
        "read",
        "requests",
        "response_class",
        "tagged_reply",
        "version",
        "wait_counts",
        "wait_seconds",
        "write",
    )

    def __init__(self, key: int, version: int, served: Served | None = None) -> None:
        api = apis.api(key)
        self.key = key
        self.version = version
        self.name = api.name
        self.handle: Handler = (served or SERVED[key]).handler()
        self.read = codec.reader(api.request, version)
        self.write = codec.writer(api.response, version)
        self.response_class: Any = api.response
        self.is_flexible = headers.request_header_version(key, version) >= 2
        self.tagged_reply = headers.response_header_version(key, version) >= 1
        self.carries_records = _carries_records(api.response)
        self.requests = 0
        # Of the requests that could not be answered in the turn they came in: how many took at most so many
        # seconds, the last place being for those that took longer, and how long all took together.
        self.wait_counts = [0] * (len(WAIT_BUCKETS) + 1)
        self.wait_seconds = 0.0

    def waited(self, seconds: float) -> None:
        """Count a request that had to wait, by how long it took."""
        self.wait_counts[bisect_left(WAIT_BUCKETS, seconds)] += 1
        self.wait_seconds += seconds

    def encode_chunks(self, response: Any, head: bytes) -> list[Buffer]:
        return codec.encode_chunks(response, self.version, head)


def _carries_records(cls: Any) -> bool:
    """Whether a message can hold batches, which are sent as they are and not copied into the answer."""
    return any(
        field.kind == "records" or (field.kind == "struct" and _carries_records(field.struct))
        for field in fields_of(cls)
    )


def records_size(response: Any) -> int:
    """How many bytes of batches a message has that can: Fetch's and ShareFetch's.

    A piece of a snapshot is not counted: who fetches one asks for the next when it has come.
    """
    size = 0
    for topic in getattr(response, "responses", ()):
        for partition in topic.partitions:
            if partition.records is not None:
                size += len(partition.records)
    return size


class Routes:
    """The routes met so far. Bounded by the table: at most one per served API and version."""

    def __init__(self, intercept: Intercept | None = None, served: Mapping[int, Served] = SERVED) -> None:
        self._routes: dict[int, Route] = {}
        self.served = served
        # Asked once per route, when it is made, so that a broker without one pays nothing.
        self.intercept = intercept

    def __iter__(self) -> Iterator[Route]:
        return iter(list(self._routes.values()))

    def find(self, key: int, version: int) -> Route | None:
        """The route, or None for an API or a version that is not served."""
        route = self._routes.get(key << 16 | version)
        if route is None:
            served = self.served.get(key)
            if served is None or not served.first <= version <= served.last:
                return None
            route = self._routes[key << 16 | version] = Route(key, version, served)
            if self.intercept is not None:
                route.handle = self.intercept(route)
        return route
