"""Every anomaly of sends and polls is found where it is, and nowhere else."""

from __future__ import annotations

from ottla.testing.history import Kind
from tests.unit.testing.histories import Clients


def sent(clients: Clients, *values: str, process: str = "p", first: int = 0, partition: str = "t-0") -> None:
    for offset, value in enumerate(values, first):
        clients(process).send(partition, value).ok(offset=offset)


def test_everything_sent_and_read_in_order_is_fine() -> None:
    clients = Clients()
    sent(clients, "a", "b", "c")
    clients("c").polled([("t-0", 0, "a")])
    clients("c").polled([("t-0", 1, "b"), ("t-0", 2, "c")])
    assert clients.kinds(drained=True) == []


# --- lost, unseen --------------------------------------------------------------------------


def test_a_write_is_lost_if_only_what_follows_it_is_read() -> None:
    clients = Clients()
    sent(clients, "a", "b", "c")
    clients("c").polled([("t-0", 0, "a")])
    clients("d").polled([("t-0", 2, "c")])
    assert clients.kinds() == [Kind.LOST_WRITE]


def test_a_write_is_lost_if_another_stands_in_its_place() -> None:
    clients = Clients()
    sent(clients, "a", "b")
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "x")])
    assert sorted(clients.kinds()) == [Kind.INCONSISTENT_OFFSET, Kind.LOST_WRITE]


def test_what_nobody_has_come_to_yet_is_not_lost() -> None:
    clients = Clients()
    sent(clients, "a", "b")
    clients("c").polled([("t-0", 0, "a")])
    assert clients.kinds() == []
    assert clients.kinds(drained=True) == [Kind.UNSEEN]


def test_a_whole_log_that_is_gone_is_unseen() -> None:
    clients = Clients()
    sent(clients, "a", "b")
    assert clients.kinds() == []
    assert clients.kinds(drained=True) == [Kind.UNSEEN] * 2


def test_what_nobody_knows_of_may_be_there_or_not() -> None:
    clients = Clients()
    clients("p").send("t-0", "timed out")
    clients("p").send("t-0", "told so").info(error="timed out")
    sent(clients, "a", process="q", first=1)
    clients("c").polled([("t-0", 0, "timed out"), ("t-0", 1, "a")])
    assert clients.kinds(drained=True) == []


def test_what_failed_must_not_be_there() -> None:
    clients = Clients()
    clients("p").send("t-0", "refused").fail(error="too large")
    assert clients.kinds(drained=True) == []
    clients("c").polled([("t-0", 0, "refused")])
    assert clients.kinds(drained=True) == [Kind.ABORTED_READ]


# --- one value, one offset -----------------------------------------------------------------


def test_one_offset_has_one_value_whoever_says_so() -> None:
    for first, second in (("send", "poll"), ("poll", "poll"), ("send", "send")):
        clients = Clients()
        for process, word, value in (("p", first, "a"), ("q", second, "b")):
            if word == "send":
                sent(clients, value, process=process)
            else:
                clients(process).polled([("t-0", 0, value)])
        assert Kind.INCONSISTENT_OFFSET in clients.kinds(), (first, second)


def test_the_same_offset_of_another_partition_is_another_place() -> None:
    clients = Clients()
    sent(clients, "a")
    sent(clients, "b", partition="t-1")
    clients("c").polled([("t-0", 0, "a"), ("t-1", 0, "b")])
    assert clients.kinds(drained=True) == []


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    clients = Clients()
    sent(clients, "a", "b")
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "b"), ("t-0", 2, "a")])
    assert clients.kinds(drained=True) == [Kind.DUPLICATE]


def test_a_value_acknowledged_at_one_offset_and_read_at_another_is_a_duplicate() -> None:
    clients = Clients()
    sent(clients, "a")
    clients("c").polled([("t-0", 1, "a")])
    assert clients.kinds(drained=True) == [Kind.DUPLICATE]


def test_two_readers_of_one_record_are_no_duplicate() -> None:
    clients = Clients()
    sent(clients, "a")
    for process in ("c", "d"):
        clients(process).polled([("t-0", 0, "a")])
    assert clients.kinds(drained=True) == []


# --- order ---------------------------------------------------------------------------------


def test_sends_stand_in_the_order_in_which_a_producer_began_them() -> None:
    clients = Clients()
    first, second = clients("p").send("t-0", "a"), clients("p").send("t-0", "b")
    second.ok(offset=0)
    first.ok(offset=1)
    assert clients.kinds() == [Kind.NONMONOTONIC_SEND]


def test_sends_of_two_producers_or_to_two_partitions_have_no_order() -> None:
    clients = Clients()
    for process, partition, offset in (("p", "t-0", 3), ("q", "t-0", 1), ("p", "t-1", 0)):
        clients(process).send(partition, f"{process}{partition}").ok(offset=offset)
    assert clients.kinds() == []


def test_a_consumer_does_not_go_back() -> None:
    clients = Clients()
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "b")])
    clients("c").polled([("t-0", 1, "b")])
    assert clients.kinds() == [Kind.NONMONOTONIC_POLL]


def test_within_one_poll_a_consumer_does_not_go_back_either() -> None:
    clients = Clients()
    clients("c").polled([("t-0", 1, "b"), ("t-0", 0, "a")])
    assert clients.kinds() == [Kind.NONMONOTONIC_POLL]


def test_a_consumer_may_be_put_back() -> None:
    clients = Clients()
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "b")])
    clients("c").positioned({"t-0": 0})
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "b")])
    assert clients.kinds() == []


def test_a_rebalance_may_put_a_consumer_anywhere() -> None:
    clients = Clients()
    sent(clients, "a", "b", "c", "d")
    clients("c").assigned("g", ["t-0"])
    clients("c").polled([("t-0", 0, "a"), ("t-0", 1, "b")])
    clients("c").revoked("g", ["t-0"])
    clients("c").assigned("g", ["t-0"])
    clients("c").polled([("t-0", 1, "b")])
    clients("d").polled([("t-0", 2, "c")])
    clients("c").lost("g", ["t-0"])
    clients("c").assigned("g", ["t-0"])
    clients("c").polled([("t-0", 3, "d")])
    assert clients.kinds() == []


def test_a_consumer_does_not_pass_over_what_others_saw() -> None:
    clients = Clients()
    clients("d").polled([("t-0", 0, "a"), ("t-0", 1, "b"), ("t-0", 2, "c")])
    clients("c").polled([("t-0", 0, "a")])
    clients("c").polled([("t-0", 2, "c")])
    assert clients.kinds() == [Kind.POLL_SKIP]


def test_a_consumer_does_not_pass_over_what_was_acknowledged() -> None:
    clients = Clients()
    sent(clients, "a", "b", "c")
    clients("c").polled([("t-0", 0, "a"), ("t-0", 2, "c")])
    assert sorted(clients.kinds()) == [Kind.LOST_WRITE, Kind.POLL_SKIP]


def test_a_consumer_starts_with_the_record_at_its_position() -> None:
    clients = Clients()
    sent(clients, "a", "b", "c")
    clients("d").polled([("t-0", 0, "a"), ("t-0", 1, "b"), ("t-0", 2, "c")])
    clients("c").positioned({"t-0": 1})
    clients("c").polled([("t-0", 2, "c")])
    assert clients.kinds() == [Kind.POLL_SKIP]
    clients("c").positioned({"t-0": None})
    clients("c").polled([("t-0", 2, "c")])
    assert clients.kinds() == [Kind.POLL_SKIP]


def test_offsets_without_records_are_not_passed_over() -> None:
    """Control records and what was compacted away."""
    clients = Clients()
    sent(clients, "a")
    sent(clients, "b", first=5)
    clients("c").positioned({"t-0": 0})
    clients("c").polled([("t-0", 0, "a"), ("t-0", 5, "b")])
    assert clients.kinds(drained=True) == []
