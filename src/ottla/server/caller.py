"""Who asks, as a coordinator's machine is told."""

from __future__ import annotations

from ottla.core.caller import Caller
from ottla.server.context import Context
from ottla.server.group_authorization import may_describe


def caller_of(ctx: Context) -> Caller:
    caller = Caller(ctx.client_id or "", ctx.connection.client_host, ctx.version)
    if ctx.node.authorizer is None:
        return caller
    return caller._replace(may_describe=lambda topic: may_describe(ctx, topic))
