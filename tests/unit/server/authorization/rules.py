"""Access rules for whoever calls a handler of a real node, and what a refusal must not change."""

from __future__ import annotations

from typing import Final

from ottla.core.acl import WILDCARD, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.core.principal import ANONYMOUS
from ottla.core.types import INTERNAL_TOPICS
from ottla.metadata.authorizer import Authorizer
from ottla.protocol.stored.metadata import AccessControlEntryRecord
from ottla.runtime.node import Node

Rule = tuple[Operation, ResourceType, str]

READ_GROUP: Final[Rule] = (Operation.READ, ResourceType.GROUP, "g")
DESCRIBE_GROUP: Final[Rule] = (Operation.DESCRIBE, ResourceType.GROUP, "g")
DELETE_GROUP: Final[Rule] = (Operation.DELETE, ResourceType.GROUP, "g")
READ_T: Final[Rule] = (Operation.READ, ResourceType.TOPIC, "t")
DESCRIBE_T: Final[Rule] = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
DESCRIBE_U: Final[Rule] = (Operation.DESCRIBE, ResourceType.TOPIC, "u")
WRITE_T: Final[Rule] = (Operation.WRITE, ResourceType.TOPIC, "t")
WRITE_ID: Final[Rule] = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
DESCRIBE_ID: Final[Rule] = (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "tx")
CLUSTER_ACTION: Final[Rule] = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
DESCRIBE_CLUSTER: Final[Rule] = (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")


def allow(node: Node, *rules: Rule) -> None:
    """From here on there is an authorizer, and these rules are all that it allows."""
    node.authorizer = Authorizer()
    node.authorizer.load(
        AccessControlEntryRecord(
            id=Uuid(bytes(15) + bytes([number])),
            resource_type=resource_type,
            resource_name=name,
            pattern_type=PatternType.LITERAL,
            principal=str(ANONYMOUS),
            host=WILDCARD,
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        for number, (operation, resource_type, name) in enumerate(rules)
    )


def allow_all(node: Node) -> None:
    node.authorizer = None


def written(node: Node) -> int:
    """How much the coordinators have written so far."""
    return sum(each.log.end_offset for each in node.replicas if each.partition.topic in INTERNAL_TOPICS)
