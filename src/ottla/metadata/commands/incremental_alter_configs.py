"""IncrementalAlterConfigs (key 44): single configs are set, deleted, appended to or subtracted from."""

from __future__ import annotations

from collections import Counter

from ottla.config.alter import Change
from ottla.metadata.commands.configs import check_exists, clear_elr_records, config_records
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import InvalidRequest, KafkaError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def incremental_alter_configs(
    state: ControllerState, request: IncrementalAlterConfigsRequest, context: Context
) -> Decision:
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
            if times[key] > 1:
                raise InvalidRequest("Duplicate resource.")
            records += _alter(state, resource)
        except KafkaError as error:
            response.error_code, response.error_message = error.code, str(error)
    records += clear_elr_records(state, records)
    return Decision(
        [] if request.validate_only else records, IncrementalAlterConfigsResponse(responses=responses)
    )


def _alter(state: ControllerState, resource: AlterConfigsResource) -> list[MetadataRecord]:
    kind, name = resource.resource_type, resource.resource_name
    changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
    after = state.configs.altered(state.image, kind, name, changes)
    check_exists(state, kind, name)
    named = (change.name for change in changes)
    return config_records(kind, name, state.image.config(kind, name), after, named)
