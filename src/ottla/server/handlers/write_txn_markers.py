"""WriteTxnMarkers, key 27, versions 0-2: write the end of transactions into partitions led here.

Sent by coordinators, and by administrators who abort a transaction that hangs: the one right or the other is
needed for it.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import ClusterAuthorizationFailed
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.runtime.write_markers import write_markers
from ottla.server.context import Context


async def write_txn_markers(request: WriteTxnMarkersRequest, ctx: Context) -> WriteTxnMarkersResponse:
    if ctx.allows_on_cluster(Operation.ALTER) or ctx.allows_on_cluster(Operation.CLUSTER_ACTION):
        return await write_markers(request, ctx.node)
    return _refused(request)


def _refused(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    code = ClusterAuthorizationFailed.code
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
