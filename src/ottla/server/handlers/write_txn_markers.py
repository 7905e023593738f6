"""WriteTxnMarkers, key 27, versions 0-2: write the end of transactions into partitions led here.

Sent by coordinators, and by administrators who abort a transaction that hangs.
"""

from __future__ import annotations

from ottla.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from ottla.runtime.markers import write_markers
from ottla.server.context import Context


async def write_txn_markers(request: WriteTxnMarkersRequest, ctx: Context) -> WriteTxnMarkersResponse:
    return await write_markers(request, ctx.node)
