"""Brokers with access rules: the small one of the handlers, and a whole one that is asked in process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from ottla import Broker
from ottla.config.available import STANDARD_AUTHORIZER
from ottla.core.acl import WILDCARD, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.core.principal import parse_principal
from ottla.metadata.authorizer import Authorizer
from ottla.protocol.stored.metadata import AccessControlEntryRecord
from ottla.server.local import Local
from ottla.server.routes import Routes
from tests.unit.server.handlers.conftest import cluster, make_node, node

__all__ = ["cluster", "make_node", "node"]

Right = tuple[Operation, ResourceType, str]
T = TypeVar("T")

GUARDED = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:root",
    "ottla.durability": "kafka",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def allowing(principal: str, *rights: Right) -> list[AccessControlEntryRecord]:
    return [
        AccessControlEntryRecord(
            id=Uuid(number.to_bytes(16, "big")),
            resource_type=resource_type,
            resource_name=name,
            pattern_type=PatternType.LITERAL,
            principal=principal,
            host=WILDCARD,
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        for number, (operation, resource_type, name) in enumerate(rights)
    ]


class Guarded:
    """A whole broker with an authorizer. Its loop runs while it is asked something."""

    def __init__(self, runner: asyncio.Runner, broker: Broker) -> None:
        self.broker = broker
        self.node = broker.node
        self._runner = runner
        self._routes = Routes()
        self._connections: dict[str, Any] = {}

    @property
    def authorizer(self) -> Authorizer:
        assert self.node.authorizer is not None
        return self.node.authorizer

    def allow(self, *rights: Right) -> None:
        """These are all the rights that there are, and `User:alice` has them."""
        self.authorizer.load(allowing("User:alice", *rights))

    def local(self, principal: str = "User:alice") -> Local:
        """Asks over this principal's connection."""
        connection = self._connections.get(principal)
        if connection is None:
            host, port = self.broker.addresses[0]
            connection = self._connections[principal] = SimpleNamespace(
                listener_name="PLAINTEXT",
                client_host="/127.0.0.1",
                address="127.0.0.1",
                dialled_host=host,
                dialled_port=port,
                principal=parse_principal(principal),
                session=None,
                endings={},
            )
        return Local(self.node, self._routes, cast(Any, connection), "test")

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(story)

    def ask(self, request: Any, version: int | None = None, *, principal: str = "User:alice") -> Any:
        return self.run(self.local(principal).ask(request, version))

    def as_root(self, request: Any, version: int | None = None) -> Any:
        return self.ask(request, version, principal="User:root")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with asyncio.Runner() as runner:
        broker = Broker(properties=GUARDED)
        runner.run(broker.start())
        try:
            yield Guarded(runner, broker)
        finally:
            runner.run(broker.stop())
