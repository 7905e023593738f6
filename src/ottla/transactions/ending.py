"""Whether a producer may end its transaction: the rules of EndTxn, in both versions of the protocol.

A producer that got no answer asks again, so a request may concern what has been done before. In version 1
it is recognised by the state alone, and a delayed request can hit a later transaction. In version 2 every
transaction has an epoch of its own (KIP-890): a request with the epoch before the present one is a repeated
one, and one with the present epoch is about what comes next.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
)
from ottla.transactions.states import State
from ottla.transactions.transaction import LAST_CLIENT_EPOCH, Transaction


class Answer(Enum):
    END = "end"  # do it
    DONE = "done"  # it has been done: answer the same again
    REFUSE = "refuse"  # INVALID_TXN_STATE
    FENCE = "fence"  # PRODUCER_FENCED


# State -> what to answer for (abort repeated, abort with the present epoch, commit repeated, commit with the
# present epoch). To abort without a transaction is a way to get a new epoch.
WITHOUT_TRANSACTION: Final = {
    State.EMPTY: (Answer.FENCE, Answer.END, Answer.FENCE, Answer.REFUSE),
    State.COMPLETE_ABORT: (Answer.DONE, Answer.END, Answer.REFUSE, Answer.REFUSE),
    State.COMPLETE_COMMIT: (Answer.REFUSE, Answer.END, Answer.DONE, Answer.REFUSE),
}


def may_end_version_1(transaction: Transaction, producer_id: int, epoch: int, committed: bool) -> bool:
    """Whether to end it now; False if that has been done before. Raises what Kafka answers otherwise."""
    if producer_id != transaction.producer_id:
        raise InvalidProducerIdMapping
    if epoch != transaction.producer_epoch:
        raise ProducerFenced
    if transaction.is_prepared:
        raise ConcurrentTransactions
    if transaction.state is State.ONGOING:
        return True
    if transaction.state is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT):
        return False
    raise _refused(transaction, committed)


def may_end_version_2(transaction: Transaction, producer_id: int, epoch: int, committed: bool) -> bool:
    """Whether to end it now; False if that has been done before. Raises what Kafka answers otherwise."""
    # First of all: while a transaction whose epochs are used up is being completed, its producer may use the
    # new producer id already.
    if transaction.is_prepared:
        raise ConcurrentTransactions
    over_the_last_epoch = (
        producer_id == transaction.previous_producer_id
        and epoch == LAST_CLIENT_EPOCH
        and transaction.producer_epoch == 0
    )
    if producer_id != transaction.producer_id and not over_the_last_epoch:
        raise InvalidProducerIdMapping
    is_repeated = over_the_last_epoch or epoch + 1 == transaction.producer_epoch
    if epoch != transaction.producer_epoch and not is_repeated:
        raise ProducerFenced
    if transaction.state is State.ONGOING:
        if is_repeated:
            raise ProducerFenced
        return True
    answer = WITHOUT_TRANSACTION[transaction.state][2 * committed + (not is_repeated)]
    if answer is Answer.FENCE:
        raise ProducerFenced
    if answer is Answer.REFUSE:
        raise _refused(transaction, committed)
    return answer is Answer.END


def _refused(transaction: Transaction, committed: bool) -> KafkaError:
    asked_for = "commit" if committed else "abort"
    return InvalidTxnState(
        f"a transaction of {transaction.transactional_id!r} in state {transaction.state.title} cannot"
        f" {asked_for}"
    )
