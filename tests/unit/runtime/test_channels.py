"""Connections between nodes: shared, replaced when they break, and not hammered at."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.client.connection import Connection
from ottla.client.errors import Disconnected, NoAnswer, Unreachable, UnsupportedRequest
from ottla.config.listeners import Listeners, check_static
from ottla.core.ids import ZERO_UUID
from ottla.metadata.cluster import BrokerRegistration, Endpoint
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.raft.membership import Address
from ottla.runtime import channels as module
from ottla.runtime.channels import Channels
from ottla.server.broker import Broker
from tests.unit.client.scripted import listening


def home(brokers: dict[int, tuple[str, int]], properties: dict[str, str] | None = None) -> Any:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "unused", **(properties or {})}
    settings = check_static(given)
    registered = {
        number: BrokerRegistration(
            number, 1, ZERO_UUID, (Endpoint("PLAINTEXT", host, port),), {}, None, fenced=False
        )
        for number, (host, port) in brokers.items()
    }
    return SimpleNamespace(
        node_id=1,
        settings=settings,
        static_properties=given,
        listeners=Listeners.parse(settings),
        image=SimpleNamespace(brokers=registered),
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The client ids of the connections that were made."""
    made: list[str] = []
    real = Connection.open

    async def counting(host: str, port: int, **named: Any) -> Connection:
        made.append(named["client_id"])
        return await real(host, port, **named)

    monkeypatch.setattr(Connection, "open", counting)
    return made


def test_requests_of_one_purpose_share_a_connection(opened: list[str]) -> None:
    async def main() -> None:
        async with Broker() as broker:
            channels = Channels(home({2: broker.addresses[0]}))
            asked = (channels.ask_broker(2, MetadataRequest(), MetadataResponse) for _ in range(40))
            answers = await asyncio.gather(*asked)
            assert {each.cluster_id for each in answers} == {broker.node.cluster_id}
            assert opened == ["node-1"]
            await channels.ask_broker(2, MetadataRequest(), MetadataResponse, purpose="fetch")
            assert opened == ["node-1", "node-1-fetch"]
            await channels.close()

    asyncio.run(main())


def test_a_controller_is_asked_where_it_listens_and_in_the_version_given() -> None:
    async def main() -> None:
        async with Broker() as broker:
            channels = Channels(home({}))
            at = Address("PLAINTEXT", *broker.addresses[0])
            answer = await channels.ask_controller(
                at, ApiVersionsRequest(), ApiVersionsResponse, within=10, version=0
            )
            assert answer.api_keys
            with pytest.raises(UnsupportedRequest, match="in version 99"):
                await channels.ask_controller(at, MetadataRequest(), MetadataResponse, within=10, version=99)
            await channels.close()

    asyncio.run(main())


def test_a_connection_that_broke_is_replaced(opened: list[str]) -> None:
    async def main() -> None:
        async with Broker() as first, Broker() as second:
            node = home({2: first.addresses[0]})
            channels = Channels(node)
            assert (await ask(channels, 2)).cluster_id == first.node.cluster_id
            await first.stop()
            with pytest.raises((Disconnected, Unreachable)):
                await ask(channels, 2)
            node.image.brokers[2] = home({2: second.addresses[0]}).image.brokers[2]
            assert (await ask(channels, 2)).cluster_id == second.node.cluster_id
            await channels.close()

    asyncio.run(main())


def test_a_broker_that_moved_is_asked_at_its_new_address() -> None:
    async def main() -> None:
        async with Broker() as first, Broker() as second:
            node = home({2: first.addresses[0]})
            channels = Channels(node)
            assert (await ask(channels, 2)).cluster_id == first.node.cluster_id
            node.image.brokers.update(home({2: second.addresses[0]}).image.brokers)
            assert (await ask(channels, 2)).cluster_id == second.node.cluster_id
            await channels.close()

    asyncio.run(main())


def test_a_node_that_cannot_be_reached_is_not_tried_again_at_once(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.2)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

    async def main() -> None:
        channels = Channels(home({2: ("127.0.0.1", port)}))
        for _ in range(20):
            with pytest.raises(Unreachable, match="connection refused"):
                await ask(channels, 2)
        assert len(opened) == 1
        await asyncio.sleep(0.45)
        with pytest.raises(Unreachable):
            await ask(channels, 2)
        assert len(opened) == 2

    asyncio.run(main())


def test_who_is_not_registered_is_not_reached() -> None:
    async def main() -> None:
        channels = Channels(home({}))
        with pytest.raises(Unreachable, match="broker 7 is not registered"):
            await ask(channels, 7)

    asyncio.run(main())


def test_a_node_that_says_nothing_costs_no_more_than_the_time_given() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with listening(silence) as port:
            channels = Channels(home({2: ("127.0.0.1", port)}))
            with pytest.raises((NoAnswer, Unreachable)):
                await channels.ask_broker(2, MetadataRequest(), MetadataResponse, within=0.1)
            await channels.close()

    asyncio.run(main())


def test_closing_wakes_whoever_waits() -> None:
    async def main() -> None:
        async with Broker() as broker:
            channels = Channels(home({2: broker.addresses[0]}))
            await ask(channels, 2)
            waiting = asyncio.ensure_future(ask(channels, 2))
            await asyncio.sleep(0)
            await channels.close()
            with pytest.raises(Disconnected):
                await waiting
            with pytest.raises(Disconnected, match="stopping"):
                await ask(channels, 2)

    asyncio.run(main())


def test_the_number_of_connections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHANNELS_MAX", 2)

    async def main() -> None:
        async with Broker() as broker:
            channels = Channels(home({2: broker.addresses[0]}))
            for purpose in ("a", "b", "c", "d"):
                await channels.ask_broker(2, MetadataRequest(), MetadataResponse, purpose=purpose)
            kept = [key.purpose for key in channels._channels]
            assert kept == ["c", "d"]
            await channels.close()

    asyncio.run(main())


async def ask(channels: Channels, broker_id: int) -> MetadataResponse:
    return cast(
        MetadataResponse, await channels.ask_broker(broker_id, MetadataRequest(), MetadataResponse, within=10)
    )
