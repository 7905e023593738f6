"""What the APIs that read and alter configs share: the kinds of resources, and who settles what.

An alteration is looked at twice, as in Kafka: here, where what is wrong with the request itself is refused
and log levels are changed, since they belong to this process; then by the controller, which keeps the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from ottla.config.describe import Layers
from ottla.config.settings import ConfigError, InvalidChange
from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownServerError
from ottla.server import authorization
from ottla.server.context import Context

if TYPE_CHECKING:
    from ottla.runtime.node import Node

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

# Whose rules say who may see and alter configs. What has none of its own is the cluster's.
_GUARDED_AS: Final = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    BROKER: ResourceType.CLUSTER,
    BROKER_LOGGER: ResourceType.CLUSTER,
    CLIENT_METRICS: ResourceType.CLUSTER,
}


class Resource(Protocol):
    resource_type: int
    resource_name: str


class Altered(Protocol):
    """How the controller answers for a resource."""

    resource_type: int
    resource_name: str
    error_code: int
    error_message: str | None


class Outcome(NamedTuple):
    error_code: int = 0
    error_message: str | None = None


R = TypeVar("R", bound=Resource)


def check_allowed(ctx: Context, operation: Operation, resource: Resource) -> None:
    """Raise unless whoever asks may do this. A kind that does not exist is for others to refuse."""
    kind = _GUARDED_AS.get(resource.resource_type)
    if kind is not None:
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
        authorization.check(ctx, operation, kind, name)


async def alter(
    resources: Sequence[R],
    settle: Callable[[R], bool],
    forward: Callable[[list[R]], Awaitable[Iterable[Altered]]],
) -> list[Outcome]:
    """How it went, resource by resource.

    `settle` raises what refuses a resource, and says whether it has dealt with it; the others are handed to
    the controller together through `forward`.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    settled: dict[tuple[int, str], Outcome] = {}
    left = []
    for resource in resources:
        key = resource.resource_type, resource.resource_name
        try:
            if times[key] > 1:
                raise InvalidRequest("Each resource must appear at most once.")
            if settle(resource):
                settled[key] = Outcome()
            else:
                left.append(resource)
        except KafkaError as error:
            settled[key] = Outcome(error.code, str(error))
    if left:
        try:
            for answer in await forward(left):
                outcome = Outcome(answer.error_code, answer.error_message)
                settled[answer.resource_type, answer.resource_name] = outcome
        except KafkaError as error:
            for resource in left:
                settled[resource.resource_type, resource.resource_name] = Outcome(error.code, str(error))
    unanswered = Outcome(UnknownServerError.code, "The controller did not answer for this resource.")
    return [settled.get((each.resource_type, each.resource_name), unanswered) for each in resources]


def layers(node: Node) -> Layers:
    """This broker's properties, by where they were given."""
    return Layers(
        static=node.static_properties,
        dynamic_default=node.image.config(BROKER, ""),
        dynamic_broker=node.image.config(BROKER, str(node.node_id)),
    )


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Around what checks configs: its errors as codes."""
    try:
        yield
    except InvalidChange as error:
        raise InvalidRequest(str(error)) from None
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


def check_values(names: Iterable[str], nulls: Sequence[str]) -> None:
    """Refuse a config that is named twice, or set to null."""
    if any(times > 1 for times in Counter(names).values()):
        raise InvalidRequest("Error due to duplicate config keys")
    if nulls:
        raise InvalidRequest(f"Null value not supported for : {', '.join(nulls)}")


def is_checked_elsewhere(resource: Resource, ctx: Context) -> bool:
    """Whether it is about a broker that has looked at it before it was forwarded, by settings of its own."""
    return ctx.at_controller and resource.resource_type == BROKER


def check_node_id(resource: Resource, node_id: int) -> None:
    """A broker alters itself, not another."""
    name = resource.resource_name
    if _integer(name) is None:
        raise InvalidRequest(f"Node id must be an integer, but it is: {name}")
    if _integer(name) != node_id:
        if resource.resource_type == BROKER_LOGGER:
            raise InvalidRequest(f"Unexpected node id. Expected {node_id}, but received {name}")
        raise InvalidRequest(f"Unexpected broker id, expected {node_id}, but received {name}")


def is_node(name: str, node_id: int) -> bool:
    """Whether a resource name is this broker's id; refuses one that is no number."""
    if _integer(name) is None:
        raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
    return _integer(name) == node_id


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
