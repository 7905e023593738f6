"""UpdateFeatures (key 57): raise or lower what the cluster may use (KIP-584)."""

from __future__ import annotations

from typing import Final

from ottla.metadata.commands.configs import MIN_INSYNC_REPLICAS
from ottla.metadata.image import BROKER_RESOURCE, MetadataRecord
from ottla.metadata.state import Context, ControllerState, Decision
from ottla.metadata.versions import (
    DISABLED,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURE_NEEDS_METADATA_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    MV_CONTROLLER_REGISTRATION,
    MV_LATEST,
    MV_MINIMUM,
    MV_THAT_CHANGED_METADATA,
    SUPPORTED_FEATURES,
    VersionRange,
)
from ottla.protocol.errors import InvalidUpdateVersion
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.protocol.stored.metadata import ConfigRecord, FeatureLevelRecord

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


def update_features(state: ControllerState, request: UpdateFeaturesRequest, context: Context) -> Decision:
    updates = {update.feature: update for update in request.feature_updates}
    proposed = dict(state.image.features) | {
        update.feature: update.max_version_level for update in updates.values()
    }
    records: list[MetadataRecord] = []
    try:
        for update in updates.values():
            records += _update(state, update, _upgrade_type(update, context.version), proposed)
    except InvalidUpdateVersion as error:
        return Decision(
            [],
            UpdateFeaturesResponse(
                error_code=error.code,
                error_message="The update failed for all features since the following feature had an "
                f"error: {error}",
            ),
        )
    elr = updates.get(ELIGIBLE_LEADER_REPLICAS_VERSION)
    if elr is not None and elr.max_version_level > 0:
        records = make_safe_for_elr(state) + records
    results = [UpdatableFeatureResult(feature=name, error_message=None) for name in updates]
    return Decision(
        [] if request.validate_only else records,
        UpdateFeaturesResponse(error_message=None, results=results if context.version <= 1 else []),
    )


def make_safe_for_elr(state: ControllerState) -> list[MetadataRecord]:
    """With eligible leader replicas, min.insync.replicas has to be one value that all brokers know of."""
    records: list[MetadataRecord] = []
    if MIN_INSYNC_REPLICAS not in state.image.config(BROKER_RESOURCE, ""):
        records.append(
            ConfigRecord(
                resource_type=BROKER_RESOURCE,
                resource_name="",
                name=MIN_INSYNC_REPLICAS,
                value=str(state.settings.min_insync_replicas),
            )
        )
    for (kind, name), values in state.image.configs.items():
        if kind == BROKER_RESOURCE and name and MIN_INSYNC_REPLICAS in values:
            records.append(
                ConfigRecord(resource_type=kind, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)
            )
    return records


def _upgrade_type(update: FeatureUpdateKey, version: int) -> int:
    if version == 0:
        return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    return update.upgrade_type


def _update(
    state: ControllerState, update: FeatureUpdateKey, upgrade_type: int, proposed: dict[str, int]
) -> list[MetadataRecord]:
    name, level = update.feature, update.max_version_level
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _refused(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _refused(name, level, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(state, name, level)
    if reason is not None:
        raise _refused(name, level, reason)
    current = state.kraft_version if name == KRAFT_VERSION else state.image.features.get(name, 0)
    if level < current and upgrade_type == UPGRADE:
        raise _refused(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either "
            "safe or unsafe downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _refused(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
    elif name == KRAFT_VERSION:
        if level != current:
            raise _refused(name, level, "Can't change the version of this feature.")
        return []
    else:
        if name not in SUPPORTED_FEATURES:
            raise _refused(name, level, f"Feature {name} not found.")
        needed = FEATURE_NEEDS_METADATA_VERSION.get((name, level), 0)
        if proposed.get(METADATA_VERSION, 0) < needed:
            raise _refused(
                name,
                level,
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}",
            )
    return [FeatureLevelRecord(name=name, feature_level=level)]


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if not MV_MINIMUM <= level <= MV_LATEST:
        raise InvalidUpdateVersion(
            f"Invalid metadata.version {level}. Valid versions are from {MV_MINIMUM} to {MV_LATEST}."
        )
    if any(level < changed <= current for changed in MV_THAT_CHANGED_METADATA):
        because = (
            "Unsafe metadata downgrade is not supported in this version."
            if upgrade_type == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        raise InvalidUpdateVersion(
            f"Unsupported metadata.version downgrade from {current} to {level}. {because}"
        )


def _reason_not_supported(state: ControllerState, name: str, level: int) -> str | None:
    """Why some node could not live with this level; None when all can."""
    node = state.settings.node_id
    reason = _outside(f"Local controller {node}", SUPPORTED_FEATURES.get(name, DISABLED), level)
    for broker in state.image.brokers.values():
        reason = reason or _outside(f"Broker {broker.id}", broker.features.get(name, DISABLED), level)
    if reason is None and state.image.metadata_version >= MV_CONTROLLER_REGISTRATION:
        for controller in state.image.controllers.values():
            if controller.id != node:
                supported = controller.features.get(name, DISABLED)
                reason = reason or _outside(f"Controller {controller.id}", supported, level)
        for voter in state.settings.quorum_nodes:
            if voter != node and voter not in state.image.controllers:
                reason = reason or f"controller {voter} has not registered, and may not support this feature"
    return reason


def _outside(who: str, supported: VersionRange, level: int) -> str | None:
    if supported.min <= level <= supported.max:
        return None
    if supported.max == 0:
        return f"{who} does not support this feature."
    return f"{who} only supports versions {supported.min}-{supported.max}"


def _refused(name: str, level: int, because: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(f"Invalid update version {level} for feature {name}. {because}")
