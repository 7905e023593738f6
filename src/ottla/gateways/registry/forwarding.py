"""Changes to the registry, brought to the broker that makes them: the one that leads its topic.

Ids and versions are given by whoever has read everything that was written before, so there is one broker that
writes. The others hand on what changes something, over HTTP and over the listener that the client came by;
what only reads they answer themselves.
"""

from __future__ import annotations

import asyncio
from typing import Final

import h11

from ottla.client.errors import BadSecurity
from ottla.gateways.pages import Page
from ottla.gateways.registry.asked import Asked
from ottla.registry.errors import ForwardingFailed, UnknownLeader
from ottla.runtime.channel_security import channel_security
from ottla.server.doors import Visit

# Says that a request was handed on once, and is not to be handed on again.
FORWARDED: Final = "X-Forwarded-By-Broker"
ANSWER_MAX: Final = 4 << 20
ANSWER_SECONDS: Final = 40.0
CONNECT_SECONDS: Final = 5.0


def changes_something(asked: Asked) -> bool:
    if asked.method in ("PUT", "DELETE"):
        return True
    # A POST to a subject itself, and to compatibility, asks whether a schema is known, or would do.
    return asked.method == "POST" and asked.steps[:1] == ["subjects"] and asked.steps[2:] == ["versions"]


async def forward(visit: Visit, asked: Asked, broker_id: int) -> Page:
    """What that broker answers. Raises `RegistryError` when it does not."""
    if asked.is_forwarded:
        raise UnknownLeader("This broker does not lead the topic of schemas, and was taken to do so")
    node, listener = visit.doors.node, visit.connection.listener_name
    broker = node.image.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoint(listener)
    if endpoint is None:
        raise UnknownLeader(f"Broker {broker_id}, which leads the topic of schemas, is not on this listener")
    protocol = node.listeners.protocols.get(listener, "PLAINTEXT")
    try:
        security = channel_security(
            node.settings, node.static_properties, listener, protocol, to_controller=False
        )
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=security.ssl_context()
            )
    except (OSError, TimeoutError, BadSecurity) as error:
        raise ForwardingFailed(
            f"Broker {broker_id}, which registers schemas, is not there: {error}"
        ) from None
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _exchange(reader, writer, asked, f"{endpoint.host}:{endpoint.port}", node.node_id)
    except (OSError, TimeoutError, h11.RemoteProtocolError) as error:
        raise ForwardingFailed(f"Broker {broker_id}, which registers schemas, broke off: {error}") from None
    finally:
        writer.close()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Asked, host: str, node_id: int
) -> Page:
    protocol = h11.Connection(h11.CLIENT)
    request = h11.Request(
        method=asked.method,
        target=asked.target,
        headers=[
            ("Host", host),
            ("Connection", "close"),
            ("Content-Type", asked.content_type),
            ("Content-Length", str(len(asked.body))),
            (FORWARDED, str(node_id)),
        ],
    )
    for event in (request, h11.Data(data=asked.body), h11.EndOfMessage()):
        writer.write(protocol.send(event) or b"")
    await writer.drain()
    status, content_type, body = 500, "", bytearray()
    while True:
        received = protocol.next_event()
        if received is h11.NEED_DATA:
            protocol.receive_data(await reader.read(1 << 16))
        elif isinstance(received, h11.Response):
            status = received.status_code
            content_type = dict(received.headers).get(b"content-type", b"").decode("latin-1")
        elif isinstance(received, h11.Data):
            body += received.data
            if len(body) > ANSWER_MAX:
                raise ForwardingFailed("The broker that registers schemas does not stop talking")
        elif isinstance(received, h11.EndOfMessage):
            return Page(bytes(body), content_type, status=status)
        elif isinstance(received, h11.ConnectionClosed):
            raise ForwardingFailed("The broker that registers schemas hung up")
