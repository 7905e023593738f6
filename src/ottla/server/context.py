"""What a handler may reach: who is asking, in which version, and this node's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from ottla.runtime.node import Node
    from ottla.server.connection import Connection


class Disconnect(Exception):
    """Raised by a handler when Kafka's answer is to close the connection. The message says why."""


class Context:
    """One request's surroundings. Made for every request, so it is four slots and nothing more.

    Views of records in the request are good until the handler's first `await`: the buffer they lie in
    belongs to the connection, which then reads on into it.
    """

    __slots__ = ("client_id", "connection", "node", "version")

    def __init__(self, version: int, client_id: str | None, connection: Connection, node: Node) -> None:
        self.version = version
        self.client_id = client_id
        self.connection = connection
        self.node = node

    @property
    def at_controller(self) -> bool:
        """Whether it came by a listener of controllers."""
        name = self.connection.listener_name
        return any(each.upper() == name for each in self.node.settings.controller_listener_names)

    def allows(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether whoever asks may do this. Everybody may do everything where there is no authorizer."""
        authorizer = self.node.authorizer
        return authorizer is None or authorizer.allows(
            self.connection.principal, self.connection.address, operation, resource_type, name
        )

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)
