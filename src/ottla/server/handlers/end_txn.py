"""EndTxn, key 26, versions 0-5: commit or abort a transaction.

The answer leaves when the decision is in the coordinator's log; the markers follow (`runtime/markers.py`),
and until they are written the next transaction may hear CONCURRENT_TRANSACTIONS. From version 5 on the
request is one of transactions of version 2 (KIP-890), whatever the cluster's level.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.server.context import Context
from ottla.server.group_authorization import check_transactional_id
from ottla.server.transaction_calls import code_for, with_producer_id


async def end_txn(request: EndTxnRequest, ctx: Context) -> EndTxnResponse:
    version = ctx.version
    try:
        check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
        response: EndTxnResponse = await with_producer_id(
            ctx.node,
            request.transactional_id,
            lambda machine, now, fresh_id: machine.end_txn(request, version, now, fresh_id),
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=code_for(error, version))
    return response
