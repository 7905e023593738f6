"""ListGroups, key 16, versions 0-5: the groups that this broker coordinates.

Who may describe the cluster sees all of them, others those that they may describe.
"""

from __future__ import annotations

from ottla.core.acl import Operation, ResourceType
from ottla.core.outcome import Outcome
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.server.context import Context


async def list_groups(request: ListGroupsRequest, ctx: Context) -> ListGroupsResponse:
    try:
        answers = await ctx.node.groups.call_all(
            lambda machine, now, ticket: Outcome(
                reply=machine.list_groups(request.states_filter, request.types_filter)
            )
        )
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
    listed = [group for groups in answers for group in groups]
    if not ctx.allows_on_cluster(Operation.DESCRIBE):
        listed = [
            group for group in listed if ctx.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ]
    return ListGroupsResponse(groups=listed)
