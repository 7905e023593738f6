"""The shell of coordinators: what a command may rely on, and what the one who asked may."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.core.outcome import Now, Outcome
from ottla.core.types import CONSUMER_OFFSETS
from ottla.protocol.batch import iter_batches, read_records
from ottla.protocol.control import EndTransactionMarker, end_transaction_batch
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    NotCoordinator,
    UnknownMemberId,
    UnknownServerError,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.runtime import loading
from ottla.runtime.shard import Ticket
from ottla.storage.log import Origin
from ottla.testing.disk import FaultyFiles, UnsyncedFiles
from tests.unit.runtime.counting import LONG_S, Counters, CountingNode, GatedFiles, add, get, turns, wait

Story = Callable[[CountingNode], Awaitable[None]]


def run(node: CountingNode, story: Story) -> None:
    async def tell() -> None:
        async with node:
            await asyncio.wait_for(story(node), LONG_S)

    asyncio.run(tell())


def batches(node: CountingNode, key: str) -> list[memoryview]:
    log = node.partition(key).log
    return [batch for _, batch in iter_batches(log.read(0, 1 << 20, log.end_offset))]


# --- commands --------------------------------------------------------------------------------


def test_what_a_command_decides_is_in_the_log_and_in_the_machine(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        assert await node.counters.call("g", add(("a", 1), ("b", 2))) == (1, 2)
        assert await node.counters.call("g", add(("a", 5))) == (6,)
        assert await node.counters.call("g", get("a")) == 6
        machine = await node.loaded("g")
        assert machine.has_loaded
        assert [at.offset for at in machine.applied] == [0, 1, 2]
        records = [(r.key, r.value) for batch in batches(node, "g") for r in read_records(batch)]
        assert records == [(b"a", b"1"), (b"b", b"2"), (b"a", b"5")]

    run(CountingNode(tmp_path), story)


def test_a_decision_is_one_batch_as_kafka_writes_it(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1), ("b", 2)))
        [header] = [header for header, _ in iter_batches(batches(node, "g")[0])]
        assert header.record_count == 2
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
        assert not header.is_transactional
        assert header.partition_leader_epoch == node.partition("g").leader_epoch

    run(CountingNode(tmp_path), story)


def test_a_key_belongs_to_the_partition_kafka_gives_it(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        assert node.counters.partition_for("grp-classic") == 46  # before there is a topic
        await node.counters.call("grp-classic", add(("a", 1)))
        assert [index for index, _ in node.counters.partitions()] == [46]
        with pytest.raises(UnknownMemberId):
            await node.counters.call("tx-group", get("a"))

    run(CountingNode(tmp_path), story)


def test_a_command_runs_before_its_caller_waits(tmp_path: Path) -> None:
    """Requests of one connection are decided in their order, whatever each of them has to wait for."""
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        files.shut()
        steps = [node.counters.call("g", add(("a", 1))) for _ in range(3)]
        for step in steps:
            step.send(None)
        assert (await node.loaded("g")).totals["a"] == 4
        for step in steps:
            step.close()
        files.lift()

    run(CountingNode(tmp_path, files), story)


def test_who_has_to_wait_is_answered_by_the_decision_that_ends_the_wait(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = [node.call("g", wait) for _ in range(3)]
        await turns()
        assert not any(task.done() for task in waiting)
        await node.counters.call("g", add(("b", 1)))
        assert await asyncio.gather(*waiting) == ["after b"] * 3

    run(CountingNode(tmp_path), story)


def test_a_caller_who_has_hung_up_is_no_hindrance(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        gone, stays = node.call("g", wait), node.call("g", wait)
        await turns()
        gone.cancel()
        await turns()
        await node.counters.call("g", add(("b", 1)))
        assert await stays == "after b"

    run(CountingNode(tmp_path), story)


def test_a_command_that_fails_of_itself_harms_nobody_else(tmp_path: Path) -> None:
    def broken(machine: Counters, now: Now, ticket: Ticket) -> Outcome:
        raise ZeroDivisionError

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        with pytest.raises(ZeroDivisionError):
            await node.counters.call("g", broken)
        assert await node.counters.call("g", add(("a", 1))) == (2,)
        assert await waiting == "after a"

    run(CountingNode(tmp_path), story)


def test_all_machines_can_be_asked_at_once(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        assert await node.counters.call_all(lambda machine, now, ticket: Outcome(reply=1)) == []
        for key in ("vg", "tx-group", "grp-classic"):
            await node.counters.call(key, add((key, 1)))

        def names(machine: Counters, now: Now, ticket: Ticket) -> Outcome:
            return Outcome(reply=list(machine.totals))

        assert sorted(await node.counters.call_all(names)) == [["grp-classic"], ["tx-group"], ["vg"]]

    run(CountingNode(tmp_path), story)


def test_what_is_asked_of_all_is_answered_by_those_that_remain(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        for key in ("vg", "tx-group"):
            await node.counters.call(key, add((key, 1)))
        files.shut()
        writing = [node.call(key, add((key, 1))) for key in ("vg", "tx-group")]
        await files.somebody_syncs()
        asking = asyncio.create_task(
            node.counters.call_all(lambda machine, now, ticket: Outcome(reply=list(machine.totals)))
        )
        await turns()
        lead_again(node, "vg")
        await turns()
        assert not asking.done()
        files.lift()
        assert await asking == [["tx-group"]]
        await asyncio.gather(*writing, return_exceptions=True)

    run(CountingNode(tmp_path, files), story)


# --- committed first -------------------------------------------------------------------------


def test_no_answer_leaves_before_what_it_rests_on_is_synced(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        files.shut()
        written = node.call("g", add(("a", 1)))
        await files.somebody_syncs()
        seen = node.call("g", get("a"))
        refused = node.call("g", get("nobody"))
        await turns()
        assert not written.done() and not seen.done() and not refused.done()
        files.lift()
        assert await written == (2,)
        assert await seen == 2
        with pytest.raises(UnknownMemberId):
            await refused

    run(CountingNode(tmp_path, files), story)


def test_a_waiting_caller_too_is_answered_after_the_sync(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        files.shut()
        releasing = node.call("g", add(("b", 1)))
        await files.somebody_syncs()
        await turns()
        assert not waiting.done() and not releasing.done()
        files.lift()
        assert await waiting == "after b"

    run(CountingNode(tmp_path, files), story)


def test_effects_come_after_the_sync_and_in_order(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        files.shut()
        first = node.call("g", add(("a", 1), effects=["one", "two"]))
        await files.somebody_syncs()
        second = node.call("g", add(("a", 1), effects=["three"]))
        await turns()
        assert node.effects == []
        files.lift()
        await asyncio.gather(first, second)
        assert node.effects == ["one", "two", "three"]

    run(CountingNode(tmp_path, files), story)


def test_an_answer_that_rests_on_nothing_new_needs_no_wait(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        steps = node.counters.call("g", get("a"))
        with pytest.raises(StopIteration) as done:
            steps.send(None)
        assert done.value.value == 1

    run(CountingNode(tmp_path), story)


@pytest.mark.parametrize("durability", ["durable", "kafka"])
def test_no_answer_leaves_before_the_other_replicas_have_it(tmp_path: Path, durability: str) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        partition = node.partition("g")
        partition.isr.reset((1, 2), (1, 2), 1)
        written, seen = node.call("g", add(("a", 1))), node.call("g", get("a"))
        while durability == "durable" and partition.log.recovery_point < 2:
            await turns(1)
        await turns()
        assert not written.done() and not seen.done()
        partition.isr.fetched(2, partition.log.end_offset, 0, -1, partition.log.end_offset, 0)
        partition.become_leader(partition.leader_epoch, partition.partition_epoch)  # looks at the watermark
        assert (await written, await seen) == ((2,), 2)

    run(CountingNode(tmp_path, ottla_durability=durability), story)


def test_without_durability_a_write_to_the_page_cache_is_enough(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        files.shut()
        steps = node.counters.call("g", add(("a", 1)))
        with pytest.raises(StopIteration) as done:
            steps.send(None)
        assert done.value.value == (2,)
        assert node.partition("g") not in node.node.replicas.dirty
        files.lift()

    run(CountingNode(tmp_path, files, ottla_durability="kafka"), story)


def test_who_waits_too_long_for_the_sync_is_told_and_the_record_stays(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.prepare()
        files.shut()
        with pytest.raises(CoordinatorNotAvailable):
            await node.counters.call("g", add(("a", 1), effects=["done"]))
        assert node.effects == []
        files.lift()
        machine = await node.loaded("g")
        assert machine.totals == {"a": 1}
        while not node.effects:
            await turns(1)

    run(CountingNode(tmp_path, files, timeout_ms=20), story)


# --- the topic -------------------------------------------------------------------------------


def test_the_first_callers_share_one_creation_of_the_topic(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        results = await asyncio.gather(*(node.call("g", add(("a", 1))) for _ in range(20)))
        assert sorted(results) == [(n,) for n in range(1, 21)]
        topic = node.node.image.topics[CONSUMER_OFFSETS]
        assert len(topic.partitions) == 50
        settings = node.node.topic_settings(CONSUMER_OFFSETS)
        assert settings.cleanup_policy == frozenset({"compact"})
        assert settings.compression_type == "producer"
        assert settings.segment_bytes == 104857600

    run(CountingNode(tmp_path), story)


def test_a_topic_that_cannot_be_created_makes_the_coordinator_unavailable(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        for _ in range(2):
            with pytest.raises(CoordinatorNotAvailable):
                await node.counters.call("g", add(("a", 1)))

    run(CountingNode(tmp_path, offsets_topic_replication_factor="3"), story)


def test_a_caller_who_hangs_up_does_not_stop_the_creation_for_others(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        gone, stays = node.call("g", add(("a", 1))), node.call("g", add(("a", 1)))
        await turns(1)
        gone.cancel()
        assert await stays == (1,)

    run(CountingNode(tmp_path), story)


def test_a_deleted_topic_takes_its_machines_along(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=CONSUMER_OFFSETS)], timeout_ms=1000)
        await node.node.quorum.submit(request, 6)
        with pytest.raises(NotCoordinator):
            await waiting
        assert await node.counters.call("g", add(("a", 1))) == (1,)

    run(CountingNode(tmp_path), story)


def test_machines_hear_of_topics(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        machine = await node.loaded("g")
        machine.news.clear()
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        created = await node.node.quorum.submit(CreateTopicsRequest(topics=[topic]), 7)
        await node.node.caught_up()
        assert machine.news == [({}, {"t"})]
        topic_id = created.topics[0].topic_id
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
        await node.node.quorum.submit(request, 6)
        await node.node.caught_up()
        assert machine.news[-1] == ({topic_id: "t"}, set())

    run(CountingNode(tmp_path), story)


# --- loading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3 * loading.SLICE])
def test_a_restart_forgets_nothing(tmp_path: Path, count: int) -> None:
    async def fill(node: CountingNode) -> None:
        await asyncio.gather(*(node.call("g", add(("a", 1), ("b", n))) for n in range(count)))

    async def look(node: CountingNode) -> None:
        machine = await node.loaded("g")
        assert machine.has_loaded
        assert machine.totals == {"a": count, "b": sum(range(count))}
        assert [at.offset for at in machine.applied] == list(range(2 * count))
        assert await node.counters.call("g", add(("a", 1))) == (count + 1,)

    run(CountingNode(tmp_path), fill)
    run(CountingNode(tmp_path), look)


def test_after_a_kill_what_was_answered_is_there(tmp_path: Path) -> None:
    async def fill(node: CountingNode) -> None:
        for _ in range(5):
            await node.counters.call("g", add(("a", 1)))
        # What a process that is killed now leaves behind.
        shutil.copytree(tmp_path / "one", tmp_path / "two")

    async def look(node: CountingNode) -> None:
        assert (await node.loaded("g")).totals == {"a": 5}

    run(CountingNode(tmp_path / "one"), fill)
    run(CountingNode(tmp_path / "two"), look)


def test_machines_without_a_past_are_made_when_somebody_asks(tmp_path: Path) -> None:
    async def fill(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))

    async def look(node: CountingNode) -> None:
        await node.loaded("g")
        assert len(node.made) == 1

    run(CountingNode(tmp_path), fill)
    run(CountingNode(tmp_path), look)


def test_who_asks_while_it_loads_is_told_to_come_again(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        lead_again(node, "g")
        with pytest.raises(CoordinatorLoadInProgress):
            await node.counters.call("g", get("a"))
        with pytest.raises(CoordinatorLoadInProgress):
            await node.counters.call_all(get("a"))
        await node.loaded("g")
        assert await node.counters.call("g", get("a")) == 1

    run(CountingNode(tmp_path), story)


def test_a_log_that_cannot_be_applied_leaves_the_others_alone(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("grp-classic", add(("a", 1)))
        await node.counters.call("g", add(("a", 1)))
        with pytest.raises(AssertionError):
            await node.counters.call("g", add(("poison", 1)))
        with pytest.raises(CoordinatorNotAvailable):
            while True:
                with suppress(CoordinatorLoadInProgress):
                    await node.counters.call("g", get("a"))
                await turns(1)
        assert await node.counters.call("grp-classic", get("a")) == 1

    run(CountingNode(tmp_path), story)


# --- leadership ------------------------------------------------------------------------------


def lead_again(node: CountingNode, key: str) -> None:
    """As if another broker had led for a while."""
    partition = node.partition(key)
    partition.stop_leading(2, partition.leader_epoch + 1, partition.partition_epoch + 1)
    node.counters.follow(partition)
    partition.become_leader(partition.leader_epoch + 1, partition.partition_epoch + 1)
    node.counters.follow(partition)


def test_who_waits_when_leadership_goes_has_to_look_elsewhere(tmp_path: Path) -> None:
    files = GatedFiles()

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        files.shut()
        waiting = node.call("g", wait)
        writing = node.call("g", add(("a", 1)))
        await files.somebody_syncs()
        partition = node.partition("g")
        partition.stop_leading(2, partition.leader_epoch + 1, partition.partition_epoch + 1)
        node.counters.follow(partition)
        for task in (waiting, writing):
            with pytest.raises(NotCoordinator):
                await task
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", get("a"))
        files.lift()

    run(CountingNode(tmp_path, files), story)


def test_a_machine_knows_the_epoch_it_leads_in(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        first = await node.loaded("g")
        assert first.leader_epoch == node.partition("g").leader_epoch
        lead_again(node, "g")
        second = await node.loaded("g")
        assert second is not first
        assert second.leader_epoch == first.leader_epoch + 2
        assert second.totals == {"a": 1}

    run(CountingNode(tmp_path), story)


def test_news_of_the_same_epoch_disturbs_nobody(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        node.counters.follow(node.partition("g"))
        await turns()
        assert not waiting.done()
        await node.counters.call("g", add(("a", 1)))
        assert await waiting == "after a"

    run(CountingNode(tmp_path), story)


def test_nothing_is_decided_while_too_few_replicas_are_in_sync(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        isr = node.partition("g").isr
        isr.reset((1, 2, 3), (1,), 2)
        with pytest.raises(CoordinatorNotAvailable):
            await node.counters.call("g", add(("a", 1)))
        isr.reset((1,), (1,), 1)
        assert await node.counters.call("g", add(("a", 1))) == (2,)

    run(CountingNode(tmp_path), story)


# --- a log that does not take it -------------------------------------------------------------


def test_a_failed_sync_sends_everybody_away(tmp_path: Path) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        files.fail(on="fsync", path=f"*/{CONSUMER_OFFSETS}-*.log")
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", add(("a", 1), effects=["never"]))
        with pytest.raises(NotCoordinator):
            await waiting
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", get("a"))
        assert node.effects == []

    run(CountingNode(tmp_path, files), story)


@pytest.mark.parametrize("durability", ["durable", "kafka"])
def test_a_failed_write_sends_everybody_away(tmp_path: Path, durability: str) -> None:
    files = FaultyFiles(UnsyncedFiles())

    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        files.fail(on="write", path=f"*/{CONSUMER_OFFSETS}-*.log")
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", add(("a", 1)))
        with pytest.raises(NotCoordinator):
            await waiting
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", get("a"))

    run(CountingNode(tmp_path, files, ottla_durability=durability), story)


def test_a_decision_too_large_for_the_log_is_an_error_and_the_machine_begins_again(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        waiting = node.call("g", wait)
        await turns()
        with pytest.raises(UnknownServerError):
            await node.counters.call("g", add(*[("x" * 1000, 1)] * 2000))
        with pytest.raises(NotCoordinator):
            await waiting
        assert (await node.loaded("g")).totals == {"a": 1}
        assert await node.counters.call("g", add(("a", 1))) == (2,)

    run(CountingNode(tmp_path), story)


def test_a_decision_that_need_not_stay_together_goes_into_several_batches(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(*[("x" * 1000, 1)] * 2500, atomic=False))
        assert (await node.loaded("g")).totals == {"x" * 1000: 2500}
        assert node.partition("g").log.end_offset == 2500

    run(CountingNode(tmp_path), story)


# --- transactions ----------------------------------------------------------------------------


def end_transaction(node: CountingNode, key: str, epoch: int, commit: bool) -> None:
    """What WriteTxnMarkers does."""
    partition = node.partition(key)
    marker = EndTransactionMarker(producer_id=7, producer_epoch=epoch, coordinator_epoch=0, commit=commit)
    partition.append(end_transaction_batch(marker, timestamp=0), 0, origin=Origin.COORDINATOR)
    node.node.coordinators.marker_appended(partition, marker)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("restart", [None, "before the end", "after the end"])
def test_records_of_a_transaction_count_when_it_commits(
    tmp_path: Path, commit: bool, restart: str | None
) -> None:
    async def begin(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        await node.counters.call("g", add(("a", 10)), transaction=(7, 0))
        header, _ = next(iter_batches(batches(node, "g")[1]))
        assert header.is_transactional and header.producer_id == 7

    async def end(node: CountingNode) -> None:
        machine = await node.loaded("g")
        assert machine.totals == {"a": 1}
        assert machine.applied[-1][2:] == (7, 0)
        end_transaction(node, "g", 0, commit)

    async def look(node: CountingNode) -> None:
        assert (await node.loaded("g")).totals == {"a": 11 if commit else 1}

    async def all_at_once(node: CountingNode) -> None:
        await begin(node)
        await end(node)
        await look(node)

    async def begin_and_end(node: CountingNode) -> None:
        await begin(node)
        await end(node)

    async def end_and_look(node: CountingNode) -> None:
        await end(node)
        await look(node)

    stories = {
        None: [all_at_once],
        "before the end": [begin, end_and_look],
        "after the end": [begin_and_end, look],
    }
    for story in stories[restart]:
        run(CountingNode(tmp_path), story)


def test_a_transaction_that_ends_while_the_machine_loads_has_ended(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 10)), transaction=(7, 0))
        lead_again(node, "g")
        end_transaction(node, "g", 0, commit=True)
        assert (await node.loaded("g")).totals == {"a": 10}

    run(CountingNode(tmp_path), story)


def test_a_marker_may_be_the_first_thing_in_a_log(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.prepare()
        end_transaction(node, "g", 0, commit=True)
        with pytest.raises(CoordinatorLoadInProgress):
            await node.counters.call("g", add(("a", 1)))
        await node.loaded("g")
        assert await node.counters.call("g", add(("a", 1))) == (1,)

    run(CountingNode(tmp_path), story)


def test_a_fenced_producer_is_refused_before_the_machine_hears_of_it(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)), transaction=(7, 5))
        waiting = node.call("g", wait)
        await turns()
        with pytest.raises(InvalidProducerEpoch):
            await node.counters.call("g", add(("a", 1)), transaction=(7, 4))
        await turns()
        assert not waiting.done()
        waiting.cancel()

    run(CountingNode(tmp_path), story)


# --- time ------------------------------------------------------------------------------------


def due_in(milliseconds: int, *names: str) -> Callable[[Counters, Now, Ticket], Outcome]:
    """Wait, and let the machine expire after so long."""

    def command(machine: Counters, now: Now, ticket: Ticket) -> Outcome:
        machine.due = now.monotonic_ms + milliseconds
        return machine.wait(ticket)

    return command


def test_a_deadline_brings_about_what_the_machine_decides_then(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        machine = await node.loaded("g")
        machine.after_expiry = machine.add(("late", 1)).records
        assert await node.counters.call("g", due_in(5)) == "too late"
        assert machine.totals == {"a": 1, "late": 1}
        assert node.partition("g").log.end_offset == 2

    run(CountingNode(tmp_path), story)


def test_an_earlier_deadline_comes_first_and_one_that_has_moved_away_not_at_all(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        far = node.call("g", due_in(LONG_S * 1000))
        await node.loaded("g")
        assert await node.counters.call("g", due_in(5)) == "too late"
        assert await far == "too late"
        again = node.call("g", due_in(5))
        await turns()
        moved = node.call("g", due_in(60))
        assert await again == await moved == "too late"
        assert (await node.loaded("g")).expiries == 2

    run(CountingNode(tmp_path), story)


def test_a_machine_that_fails_by_itself_begins_again(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        first = await node.loaded("g")
        first.is_broken = True
        with pytest.raises(NotCoordinator):
            await node.counters.call("g", due_in(5))
        second = await node.loaded("g")
        assert second is not first and second.totals == {"a": 1}

    run(CountingNode(tmp_path), story)


def test_time_stands_still_for_a_machine_that_is_gone(tmp_path: Path) -> None:
    async def story(node: CountingNode) -> None:
        await node.counters.call("g", add(("a", 1)))
        machine = await node.loaded("g")
        waiting = node.call("g", due_in(5))
        await turns()
        lead_again(node, "g")
        with pytest.raises(NotCoordinator):
            await waiting
        # Another one's deadline after ours has come and gone.
        assert await node.counters.call("grp-classic", due_in(30)) == "too late"
        assert machine.expiries == 0

    run(CountingNode(tmp_path), story)
