"""The HTTP door: a page that says what this is, health, metrics, the schema registry. h11 parses HTTP/1.1.

Everything that is not in `PAGES` or `REGISTRY` is refused. Pages have no use for a body: it is read, as the
protocol wants it, and thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

import h11

from ottla.gateways import health, metrics, welcome
from ottla.gateways.pages import Page
from ottla.server.doors import Visit

HEADERS_MAX: Final = 16 << 10
BODY_MAX: Final = 1 << 20
READ_BYTES: Final = 64 << 10
# How long a client may take to send a request. One that is slower, or has no more to ask, is hung up on.
REQUEST_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 60.0

PAGES: Final[Mapping[str, Callable[[Visit], Awaitable[Page]]]] = {
    "/": welcome.page,
    "/health": health.ready,
    "/health/live": health.live,
    "/health/ready": health.ready,
    "/metrics": metrics.page,
}

# The schema registry's paths start with one of these. It has no associations, and says so as a registry does.
REGISTRY: Final = frozenset(
    ("subjects", "schemas", "config", "mode", "compatibility", "contexts", "associations", "v1")
)

# What is answered before the logs are loaded.
WHILE_STARTING: Final = frozenset(("/health", "/health/live", "/health/ready"))

# For every answer: nothing is run, framed, guessed or kept.
ALWAYS: Final = (
    ("Server", "ottla"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)


class Refused(Exception):
    """The request is answered with this page, and the connection closed."""

    def __init__(self, request: h11.Request, status: int, text: str) -> None:
        self.page = Page(text + "\n", status=status)
        self.page.has_body = request.method != b"HEAD"


async def serve(visit: Visit) -> None:
    protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADERS_MAX)
    while protocol.states == {h11.CLIENT: h11.IDLE, h11.SERVER: h11.IDLE}:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                request = await _request(visit, protocol)
            if request is None:
                return
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await _page(visit, *request)
            page.has_body = request[0].method != b"HEAD"
        except TimeoutError:
            return
        except Refused as refused:
            page = refused.page
        except h11.RemoteProtocolError as error:
            page = Page("This is not HTTP/1.1 as we know it\n", status=error.error_status_hint)
        if protocol.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        _send(visit, protocol, page)
        await visit.writer.drain()
        if set(protocol.states.values()) == {h11.DONE}:
            protocol.start_next_cycle()


async def _request(visit: Visit, protocol: h11.Connection) -> tuple[h11.Request, bytes] | None:
    """The next request and its body; None when the client has no more."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            if protocol.they_are_waiting_for_100_continue:
                visit.writer.write(
                    protocol.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
                )
            protocol.receive_data(await visit.reader.read(READ_BYTES))
        elif isinstance(event, h11.Request):
            request = event
            if sum(len(name) + len(value) for name, value in event.headers) + len(event.target) > HEADERS_MAX:
                raise Refused(request, 431, f"Headers have at most {HEADERS_MAX} bytes")
        elif isinstance(event, h11.Data) and request is not None:
            body += event.data
            if len(body) > BODY_MAX:
                raise Refused(request, 413, f"A body has at most {BODY_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:  # the connection is closed
            return None


async def _page(visit: Visit, request: h11.Request, body: bytes) -> Page:
    path = request.target.decode("ascii", "replace").partition("?")[0]
    make = PAGES.get(path)
    is_of_registry = path[1:].partition("/")[0] in REGISTRY
    if make is None and not is_of_registry:
        return Page(f"There is nothing here. There is {', '.join(PAGES)}, and /subjects\n", status=404)
    if not visit.listener.is_ready and path not in WHILE_STARTING:
        return Page("Not yet: /health says what is being recovered\n", status=503)
    if make is None:
        return await _from_registry(visit, request, body)
    if request.method not in (b"GET", b"HEAD"):
        return Page("Only GET and HEAD\n", status=405, headers=(("Allow", "GET, HEAD"),))
    return await make(visit)


async def _from_registry(visit: Visit, request: h11.Request, body: bytes) -> Page:
    from ottla.gateways.registry import api
    from ottla.gateways.registry.asked import Asked
    from ottla.gateways.registry.forwarding import FORWARDED

    method = request.method.decode("ascii", "replace")
    headers = dict(request.headers)
    if method not in ("GET", "HEAD") and b"origin" in headers:
        # A browser that was lured here, by a page which has this address for its own, is no client.
        return Page("Nothing is changed for a web page\n", status=403)
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    target = request.target.decode("ascii", "replace")
    is_forwarded = FORWARDED.lower().encode() in headers
    return await api.serve(visit, Asked(method, target, content_type, body, is_forwarded))


def _send(visit: Visit, protocol: h11.Connection, page: Page) -> None:
    headers = [
        *ALWAYS,
        *page.headers,
        ("Content-Type", page.content_type),
        ("Content-Length", str(len(page.body))),
    ]
    if protocol.their_state is not h11.DONE:
        headers.append(("Connection", "close"))
    reason = HTTPStatus(page.status).phrase
    send = visit.writer.write
    send(protocol.send(h11.Response(status_code=page.status, headers=headers, reason=reason)) or b"")
    if page.has_body:
        send(protocol.send(h11.Data(data=page.body)) or b"")
    send(protocol.send(h11.EndOfMessage()) or b"")
