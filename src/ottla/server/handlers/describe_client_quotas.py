"""DescribeClientQuotas, key 48, versions 0-1. Answered from this broker's image."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed, InvalidRequest, KafkaError, UnsupportedVersion
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ottla.server.context import Context

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # whatever the name, the default included


async def describe_client_quotas(
    request: DescribeClientQuotasRequest, ctx: Context
) -> DescribeClientQuotasResponse:
    try:
        if not ctx.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
            raise ClusterAuthorizationFailed
        wanted = _filter(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in ctx.node.image.quotas.items()
            if _fits(dict(entity), wanted, request.strict)
        ]
    )


def _filter(components: list[ComponentData]) -> dict[str, ComponentData]:
    wanted: dict[str, ComponentData] = {}
    for each in components:
        if not each.entity_type:
            raise InvalidRequest("Invalid empty entity type.")
        if each.entity_type in wanted:
            raise InvalidRequest(
                f"Entity type {each.entity_type} cannot appear more than once in the filter."
            )
        if each.entity_type not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"Unsupported entity type {each.entity_type}")
        if each.match_type not in list(MatchType):
            raise InvalidRequest(f"Unknown match type {each.match_type}")
        if each.match_type == MatchType.EXACT:
            if each.match is None:
                raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        elif each.match is not None:
            kind = MatchType(each.match_type).name
            raise InvalidRequest(f"Request specified MATCH_TYPE_{kind}, but also specified a match string.")
        wanted[each.entity_type] = each
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return wanted


def _fits(entity: Mapping[str, str | None], wanted: Mapping[str, ComponentData], strict: bool) -> bool:
    """Whether the entity has what is wanted, and with `strict` nothing else."""
    if strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and (each.match_type == MatchType.SPECIFIED or entity[kind] == each.match)
        for kind, each in wanted.items()
    )
