"""OffsetDelete, key 47, version 0: forget the positions of a group in some partitions."""

from __future__ import annotations

from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.server.context import Context


async def offset_delete(request: OffsetDeleteRequest, ctx: Context) -> OffsetDeleteResponse:
    response: OffsetDeleteResponse
    try:
        response = await ctx.node.groups.call(
            request.group_id, lambda machine, now, ticket: machine.offset_delete(request)
        )
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return response
