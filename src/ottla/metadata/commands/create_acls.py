"""CreateAcls (key 30). The same rule is there once, however often it is created.

A rule with a word that only filters have (ANY, MATCH) is refused, where Kafka fails the whole request.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ottla.core.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.protocol.errors import InvalidRequest, KafkaError, PolicyViolation
from ottla.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.protocol.stored.metadata import AccessControlEntryRecord

Rule = tuple[int, str, int, str, str, int, int]


def create_acls(state: ControllerState, request: CreateAclsRequest, context: Context) -> Decision:
    wanted: dict[Rule, AclCreation] = {}
    errors: list[KafkaError | None] = []
    for creation in request.creations:
        try:
            _check(creation)
        except KafkaError as error:
            errors.append(error)
        else:
            errors.append(None)
            wanted[_rule(creation)] = creation
    for rule in _existing(state.image.acls.values(), wanted):
        del wanted[rule]
    if len(wanted) > MAX_RECORDS_PER_REQUEST:
        refused = PolicyViolation("Unable to perform excessively large batch operation.")
        errors = [error or refused for error in errors]
        wanted = {}
    records: dict[Uuid, MetadataRecord] = {}
    for creation in wanted.values():
        number = context.new_id()
        while number in state.image.acls or number in records:
            number = context.new_id()
        records[number] = _record(creation, number)
    return Decision(list(records.values()), CreateAclsResponse(results=[_result(error) for error in errors]))


def _check(creation: AclCreation) -> None:
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise InvalidRequest("Invalid empty resource name")
    if not ResourceType.ANY < creation.resource_type <= max(ResourceType):
        raise InvalidRequest(f"Invalid resourceType {_name(ResourceType, creation.resource_type)}")
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"Invalid patternType {_name(PatternType, creation.resource_pattern_type)}")
    if not Operation.ANY < creation.operation <= max(Operation):
        raise InvalidRequest(f"Invalid operation {_name(Operation, creation.operation)}")
    if creation.permission_type not in (Permission.ALLOW, Permission.DENY):
        raise InvalidRequest(f"Invalid permissionType {_name(Permission, creation.permission_type)}")
    if ":" not in creation.principal:
        raise InvalidRequest(
            f"Could not parse principal from `{creation.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )


def _name(words: type[IntEnum], number: int) -> str:
    return words(number).name if number in list(words) else "UNKNOWN"


def _existing(rules: Iterable[AccessControlEntryRecord], wanted: dict[Rule, AclCreation]) -> set[Rule]:
    """Those that are there already. There may be very many rules, so most are passed over by their name."""
    names = {creation.resource_name for creation in wanted.values()}
    found = {_rule_of(each) for each in rules if each.resource_name in names}
    return found & wanted.keys()


def _rule(creation: AclCreation) -> Rule:
    return (
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _rule_of(record: AccessControlEntryRecord) -> Rule:
    return (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def _record(creation: AclCreation, number: Uuid) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=number,
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=str(error))
