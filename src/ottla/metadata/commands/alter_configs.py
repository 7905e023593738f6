"""AlterConfigs (key 33): a resource's configs are replaced as a whole."""

from __future__ import annotations

from collections import Counter

from ottla.metadata.commands.configs import RESOURCES, check_exists, clear_elr_records, config_records
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import InvalidRequest, KafkaError, UnsupportedVersion
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def alter_configs(state: ControllerState, request: AlterConfigsRequest, context: Context) -> Decision:
    records: list[MetadataRecord] = []
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    resources = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    for key, resource in resources.items():
        response = AlterConfigsResourceResponse(
            resource_type=key[0], resource_name=key[1], error_message=None
        )
        responses.append(response)
        try:
            if key[0] not in RESOURCES:
                raise UnsupportedVersion(f"Unknown resource type {key[0]}.")
            if times[key] > 1:
                raise InvalidRequest("Duplicate resource.")
            records += _replace(state, resource)
        except KafkaError as error:
            response.error_code, response.error_message = error.code, str(error)
    records += clear_elr_records(state, records)
    return Decision([] if request.validate_only else records, AlterConfigsResponse(responses=responses))


def _replace(state: ControllerState, resource: AlterConfigsResource) -> list[MetadataRecord]:
    current = state.image.config(resource.resource_type, resource.resource_name)
    wanted: dict[str, str | None] = {config.name: config.value for config in resource.configs}
    dropped = {name: None for name in current if name not in wanted}
    records = config_records(state, resource.resource_type, resource.resource_name, wanted | dropped, current)
    check_exists(state, resource.resource_type, resource.resource_name)
    return records
