"""Who asks, as a coordinator's machine is told."""

from __future__ import annotations

from ottla.core.caller import Caller
from ottla.server.context import Context


def caller_of(ctx: Context) -> Caller:
    return Caller(ctx.client_id or "", ctx.connection.client_host, ctx.version)
