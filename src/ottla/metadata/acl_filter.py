"""Which access rules a filter means: that of DescribeAcls, and those of DeleteAcls."""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.acl import WILDCARD, Operation, PatternType, Permission, ResourceType
from ottla.protocol.messages.delete_acls import DeleteAclsFilter
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.stored.metadata import AccessControlEntryRecord


class AclFilter(NamedTuple):
    """What is None or ANY fits all."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def is_of_unknown_resources(self) -> bool:
        return _is_unknown(ResourceType, self.resource_type) or _is_unknown(PatternType, self.pattern_type)

    @property
    def is_of_unknown_entries(self) -> bool:
        return _is_unknown(Operation, self.operation) or _is_unknown(Permission, self.permission_type)

    def matches(self, rule: AccessControlEntryRecord) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, rule.resource_type)
            and self._matches_pattern(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission_type in (Permission.ANY, rule.permission_type)
        )

    def _matches_pattern(self, rule: AccessControlEntryRecord) -> bool:
        if self.pattern_type == PatternType.MATCH:
            if self.name is None or self.name == rule.resource_name:
                return True
            if rule.pattern_type == PatternType.PREFIXED:
                return self.name.startswith(rule.resource_name)
            return rule.resource_name == WILDCARD
        if self.pattern_type not in (PatternType.ANY, rule.pattern_type):
            return False
        return self.name in (None, rule.resource_name)


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _is_unknown(
    words: type[ResourceType] | type[PatternType] | type[Operation] | type[Permission], number: int
) -> bool:
    return not 0 < number <= max(words)
