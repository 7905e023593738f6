"""UpdateFeatures, key 57, versions 0-2. Decided by the controller, which this broker asks."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.server.authorization import check_cluster
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def update_features(request: UpdateFeaturesRequest, ctx: Context) -> UpdateFeaturesResponse:
    try:
        check_cluster(ctx, Operation.ALTER)
        response: UpdateFeaturesResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        return UpdateFeaturesResponse(
            error_code=error.code,
            error_message=str(error),
            # Gone from version 2 on, where the features stand or fall together.
            results=[
                UpdatableFeatureResult(
                    feature=update.feature, error_code=error.code, error_message=str(error)
                )
                for update in request.feature_updates
            ],
        )
    if not request.validate_only:
        await seen_here(ctx)
    return response
