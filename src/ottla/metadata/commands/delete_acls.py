"""DeleteAcls (key 31). A rule that several filters match is named by each and removed once.

A filter that matches too many rules removes none, where Kafka answers an error and removes some of them.
"""

from __future__ import annotations

from ottla.core.ids import Uuid
from ottla.metadata.acl_filter import AclFilter, filter_of
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.protocol.errors import InvalidRequest, KafkaError, PolicyViolation
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.protocol.stored.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord


def delete_acls(state: ControllerState, request: DeleteAclsRequest, context: Context) -> Decision:
    removed: dict[Uuid, None] = {}
    results = []
    for asked in request.filters:
        try:
            matching = _matching(state, filter_of(asked))
            if len(removed.keys() | matching.keys()) > MAX_RECORDS_PER_REQUEST:
                raise PolicyViolation(
                    f"Cannot remove more than {MAX_RECORDS_PER_REQUEST} acls in a single delete operation."
                )
        except KafkaError as error:
            results.append(DeleteAclsFilterResult(error_code=error.code, error_message=str(error)))
        else:
            removed |= dict.fromkeys(matching)
            results.append(
                DeleteAclsFilterResult(
                    error_message=None, matching_acls=[_named(rule) for rule in matching.values()]
                )
            )
    records: list[MetadataRecord] = [RemoveAccessControlEntryRecord(id=each) for each in removed]
    return Decision(records, DeleteAclsResponse(filter_results=results))


def _matching(state: ControllerState, wanted: AclFilter) -> dict[Uuid, AccessControlEntryRecord]:
    if wanted.is_of_unknown_resources:
        raise InvalidRequest("Unknown patternFilter.")
    if wanted.is_of_unknown_entries:
        raise InvalidRequest("Unknown entryFilter.")
    return {number: rule for number, rule in state.image.acls.items() if wanted.matches(rule)}


def _named(rule: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )
