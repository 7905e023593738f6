"""IncrementalAlterConfigs (key 44): single configs are set, deleted, appended to or subtracted from."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

from ottla.metadata.commands.configs import RESOURCES, check_exists, clear_elr_records, config_records
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.protocol.errors import InvalidConfig, InvalidRequest, KafkaError, UnsupportedVersion
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


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
            if key[0] not in RESOURCES:
                raise UnsupportedVersion(f"Unknown resource type {key[0]}.")
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
    current = state.image.config(resource.resource_type, resource.resource_name)
    duplicated = [
        name for name, times in Counter(config.name for config in resource.configs).items() if times > 1
    ]
    if duplicated:
        raise InvalidRequest(f"Error due to duplicate config keys : {','.join(duplicated)}")
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and config.config_operation != Operation.DELETE
    ]
    if nulls:
        raise InvalidRequest(f"Null value not supported for : {','.join(nulls)}")
    changes = {
        config.name: _value(state, resource.resource_type, config, current.get(config.name))
        for config in resource.configs
    }
    records = config_records(state, resource.resource_type, resource.resource_name, changes, current)
    check_exists(state, resource.resource_type, resource.resource_name)
    return records


def _value(
    state: ControllerState, resource_type: int, config: AlterableConfig, current: str | None
) -> str | None:
    try:
        operation = Operation(config.config_operation)
    except ValueError:
        raise InvalidRequest(f"Unknown config operation {config.config_operation}.") from None
    if operation is Operation.SET:
        return config.value
    if operation is Operation.DELETE:
        return None
    if not state.configs.is_list(resource_type, config.name):
        raise InvalidConfig(f"Can't {operation.name} to key {config.name} because its type is not LIST.")
    if current is None:
        current = state.configs.default(resource_type, config.name)
    entries = [entry for entry in (current or "").split(",") if entry]
    for entry in (config.value or "").split(","):
        if operation is Operation.APPEND:
            if entry not in entries:
                entries.append(entry)
        elif entry in entries:
            entries.remove(entry)
    return ",".join(entries)
