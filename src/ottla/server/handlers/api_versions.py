"""ApiVersions (key 18, versions 0-4): what is served on this listener, answered from `server/api.py`.

A version we do not know is answered in version 0 with UNSUPPORTED_VERSION and our own range (KIP-511).
"""

from __future__ import annotations

import re
from typing import Final

from ottla.metadata.versions import SUPPORTED_FEATURES
from ottla.protocol.errors import InvalidRequest, UnsupportedVersion
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.server.api import API_VERSIONS, SERVED, SERVED_TO_CONTROLLERS
from ottla.server.context import Context

SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def api_versions(request: ApiVersionsRequest, ctx: Context) -> ApiVersionsResponse:
    if ctx.version >= 3 and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=InvalidRequest.code)
    image = ctx.node.image
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=row.key, min_version=row.first, max_version=row.last)
            for row in (SERVED_TO_CONTROLLERS if ctx.at_controller else SERVED).values()
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=first, max_version=last)
            for name, (first, last) in sorted(SUPPORTED_FEATURES.items())
            # Clients older than version 4 choke on a range that starts at 0 (KAFKA-17011).
            if first > 0 or ctx.version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(ctx.node.quorum.finalized_features().items())
            if level > 0
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    own = SERVED[API_VERSIONS]
    return ApiVersionsResponse(
        error_code=UnsupportedVersion.code,
        api_keys=[ApiVersion(api_key=own.key, min_version=own.first, max_version=own.last)],
    )
