"""AlterUserScramCredentials, key 51, version 0. Decided by the controller, which this broker asks.

Answers once users can log in with what was set, and no longer with what was removed.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.server.context import Context
from ottla.server.controller import ask_controller, seen_here


async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, ctx: Context
) -> AlterUserScramCredentialsResponse:
    try:
        if not ctx.allows_on_cluster(Operation.ALTER):
            raise ClusterAuthorizationFailed
        response: AlterUserScramCredentialsResponse = await ask_controller(request, ctx)
    except KafkaError as error:
        names = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=str(error))
                for name in sorted(names)
            ]
        )
    await seen_here(ctx)
    return response
