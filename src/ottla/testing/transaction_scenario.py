"""Says the lines of a transcript to the machine of one partition of `__transaction_state`.

A line is a verb, who does it, and details as `name=value`. Who is a producer by its name; what id and epoch
it was given is remembered, and `as=1000/3` says another. Producers of transactions of version 1 say `v1`.
All of them have the transactional id `tx`, unless they say another: `id=other`.
"""

from __future__ import annotations

from typing import Any

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.core.outcome import Now, Outcome
from ottla.core.types import TopicPartition
from ottla.protocol.errors import error_name
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.testing.shard import Marker, MemoryShard, Ticket, Written
from ottla.transactions import records
from ottla.transactions.effects import WriteMarkers
from ottla.transactions.listing import Filter, describe
from ottla.transactions.machine import PRODUCER_ID_NEEDED, TransactionMachine
from ottla.transactions.transaction import VERSION_1, VERSION_2, Transaction

NODE = {"node.id": "1", "process.roles": "broker"}
NOBODY = (-1, -1)


class TransactionScenario:
    """Verbs are methods named `do_...`; what happened is told in lines."""

    def __init__(self) -> None:
        self.settings: BrokerSettings = broker_settings(NODE)
        self.level = 2
        self.producers: dict[str, tuple[int, int]] = {}
        self._next_id = 1000
        self._epoch = 0
        self.asked_for: list[WriteMarkers] = []
        self.shard: MemoryShard[TransactionMachine] = MemoryShard(self._machine)

    def _machine(self) -> TransactionMachine:
        self._epoch += 1
        return TransactionMachine(self._epoch, lambda: self.settings, lambda: self.level)

    def run(self, line: str) -> list[str]:
        verb, *words = line.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        answer = getattr(self, "do_" + verb)(plain, named) or []
        news = [shown for each in self.shard.take_news() if (shown := self._shown(each))]
        asked, self.shard.effects = self.shard.effects, []
        self.asked_for += asked
        return [*news, *(f"asks for {_markers(effect)}" for effect in asked), *answer]

    # The surroundings

    def do_set(self, plain: list[str], named: dict[str, str]) -> None:
        """set transaction.max.timeout.ms=1000: properties of the broker."""
        self.settings = broker_settings(NODE | named)

    def do_level(self, plain: list[str], named: dict[str, str]) -> None:
        """level 0: of the cluster's feature transaction.version."""
        self.level = int(plain[0])

    def do_advance(self, plain: list[str], named: dict[str, str]) -> None:
        """advance 1000: milliseconds pass."""
        self.shard.advance(int(plain[0]))

    def do_restart(self, plain: list[str], named: dict[str, str]) -> None:
        """Another coordinator takes over; markers that were not written are its business."""
        self.asked_for.clear()
        self.shard.restart()

    def do_markers(self, plain: list[str], named: dict[str, str]) -> list[str]:
        """All markers that were asked for are written."""
        asked, self.asked_for = self.asked_for, []
        for effect in asked:
            self.shard.call(lambda machine, now, ticket, e=effect: machine.markers_written(e, now))  # type: ignore[misc]
        return [f"written: {_markers(effect)}" for effect in asked]

    def do_put(self, plain: list[str], named: dict[str, str]) -> None:
        """put 1000/32765: a long life has gone before."""
        transaction = Transaction("tx", *_ids(plain[0]), timeout_ms=60_000)
        self.shard.take(lambda machine, now: Outcome(records=[records.record_of(transaction, self.level)]))

    # What producers ask

    def do_init(self, plain: list[str], named: dict[str, str]) -> None:
        """init a [as=1000/0] [timeout=60000]: InitProducerId; with `as` it says who it has been."""
        producer_id, epoch = _ids(named["as"]) if "as" in named else NOBODY
        request = InitProducerIdRequest(
            transactional_id=named.get("id", "tx"),
            transaction_timeout_ms=int(named.get("timeout", 60_000)),
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        self._ask(plain[0], lambda machine, now, fresh_id: machine.init_producer_id(request, now, fresh_id))

    def do_add(self, plain: list[str], named: dict[str, str]) -> None:
        """add a t-0 t-1: the partitions become part of the transaction."""
        who, *partitions = (word for word in plain if word != "v1")
        version = VERSION_1 if "v1" in plain else VERSION_2
        ids = self._producer(who, named)
        self._ask(
            who,
            lambda machine, now, _: machine.add_partitions(
                named.get("id", "tx"), *ids, [_partition(one) for one in partitions], now, version
            ),
        )

    def do_verify(self, plain: list[str], named: dict[str, str]) -> None:
        """verify a t-0: whether the partition is part of the transaction."""
        who, *partitions = plain
        ids = self._producer(who, named)
        self._ask(
            who,
            lambda machine, now, _: machine.verify_partitions(
                named.get("id", "tx"), *ids, [_partition(one) for one in partitions]
            ),
        )

    def do_commit(self, plain: list[str], named: dict[str, str]) -> None:
        self._end(plain, named, committed=True)

    def do_abort(self, plain: list[str], named: dict[str, str]) -> None:
        self._end(plain, named, committed=False)

    def _end(self, plain: list[str], named: dict[str, str], *, committed: bool) -> None:
        producer_id, epoch = self._producer(plain[0], named)
        request = EndTxnRequest(
            transactional_id=named.get("id", "tx"),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        version = 4 if "v1" in plain else 5
        self._ask(plain[0], lambda machine, now, fresh_id: machine.end_txn(request, version, now, fresh_id))

    # What people ask

    def do_describe(self, plain: list[str], named: dict[str, str]) -> list[str]:
        state = self.shard.call(lambda machine, now, ticket: describe(machine, plain[0]))
        topics = [f"{topic.topic}-{number}" for topic in state.topics for number in topic.partitions]
        age_ms = self.shard.now.wall_ms - state.transaction_start_time_ms
        since = f" since {age_ms} ms" if state.transaction_start_time_ms >= 0 else ""
        ids = f"{state.producer_id}/{state.producer_epoch}"
        return [f"{state.transaction_state} {ids} {_listed(topics)}{since}"]

    def do_list(self, plain: list[str], named: dict[str, str]) -> list[str]:
        """list [Ongoing ...] [longer=1000]: by state and by duration."""
        request = ListTransactionsRequest(state_filters=plain, duration_filter=int(named.get("longer", -1)))
        found = self.shard.call(lambda machine, now, ticket: Filter(request).transactions_of(machine, now))
        return [f"{one.transactional_id} {one.producer_id} {one.transaction_state}" for one in found]

    # The desk

    def _producer(self, who: str, named: dict[str, str]) -> tuple[int, int]:
        return _ids(named["as"]) if "as" in named else self.producers[who]

    def _ask(self, who: str, command: Any) -> None:
        def decide(machine: TransactionMachine, now: Now, ticket: Ticket) -> Outcome:
            outcome: Outcome = command(machine, now, None)
            if outcome.reply is PRODUCER_ID_NEEDED:
                self._next_id += 1
                outcome = command(machine, now, self._next_id - 1)
            return outcome

        self.shard.run(decide, owner=who)

    def _shown(self, news: Written | Marker | Ticket) -> str:
        if isinstance(news, Ticket):
            shown = self._answer(news)
            return f"{news.owner}: {shown}" if news.owner else ""
        assert isinstance(news, Written)
        entry = records.read(news.record)
        assert entry is not None
        transaction = entry.transaction
        if transaction is None:
            return f"forget {entry.transactional_id}"
        next_id = f" next={transaction.next_producer_id}" if transaction.next_producer_id >= 0 else ""
        return (
            f"write {entry.transactional_id} {transaction.state.title}"
            f" {transaction.producer_id}/{transaction.producer_epoch}{next_id}"
            f" {_listed(map(str, transaction.partitions))}"
        )

    def _answer(self, ticket: Ticket) -> str:
        if ticket.error is not None:
            return f"error {ticket.error.code} {ticket.error.name}"
        reply = ticket.reply
        if isinstance(reply, InitProducerIdResponse | EndTxnResponse):
            if reply.error_code:
                return f"error {reply.error_code} {error_name(reply.error_code)}"
            if reply.producer_id < 0:
                return "ok"
            self.producers[ticket.owner] = (reply.producer_id, reply.producer_epoch)
            return f"is {reply.producer_id}/{reply.producer_epoch}"
        if isinstance(reply, dict):
            codes = {
                str(one): "ok" if not code else f"{code} {error_name(code)}" for one, code in reply.items()
            }
            return " ".join(f"{one} {code}" for one, code in sorted(codes.items()))
        return str(reply)


def _ids(text: str) -> tuple[int, int]:
    producer_id, epoch = text.split("/")
    return int(producer_id), int(epoch)


def _partition(text: str) -> TopicPartition:
    topic, number = text.rsplit("-", 1)
    return TopicPartition(topic, int(number))


def _listed(partitions: Any) -> str:
    return f"[{' '.join(sorted(partitions))}]"


def _markers(effect: WriteMarkers) -> str:
    end = "commit" if effect.committed else "abort"
    return (
        f"{end} of {effect.producer_id}/{effect.producer_epoch} by coordinator {effect.coordinator_epoch}"
        f" in {_listed(map(str, effect.partitions))}"
    )
