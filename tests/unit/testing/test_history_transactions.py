"""Aborted reads, reads before their time, and transactions of which only a part is there."""

from __future__ import annotations

from ottla.testing.history import Kind
from tests.unit.testing.histories import Clients

TWO = (("t-0", 0, "a"), ("t-1", 0, "b"))


def transaction(clients: Clients, outcome: str = "ok", *, commit: bool = True, name: str = "x") -> None:
    """`a` to t-0 and `b` to t-1."""
    for partition, offset, value in TWO:
        clients("p").send(partition, value, name).ok(offset=offset)
    end = clients("p").end_transaction(name, commit=commit)
    if outcome != "never":
        getattr(end, outcome)()


def test_a_committed_transaction_is_seen_whole() -> None:
    clients = Clients()
    transaction(clients)
    clients("c").polled(TWO, committed=True)
    assert clients.kinds(drained=True) == []


def test_an_aborted_transaction_is_not_seen_by_read_committed() -> None:
    clients = Clients()
    transaction(clients, commit=False)
    assert clients.kinds(drained=True) == []
    clients("c").polled(TWO[:1], committed=True)
    assert clients.kinds(drained=True) == [Kind.ABORTED_READ]


def test_read_uncommitted_may_see_what_is_aborted() -> None:
    clients = Clients()
    transaction(clients, commit=False)
    clients("c").polled(TWO)
    assert clients.kinds(drained=True) == []


def test_a_commit_that_failed_is_an_abort() -> None:
    clients = Clients()
    transaction(clients, "fail")
    clients("c").polled(TWO, committed=True)
    assert clients.kinds() == [Kind.ABORTED_READ] * 2


def test_an_abort_that_nobody_knows_of_is_still_no_commit() -> None:
    clients = Clients()
    transaction(clients, "never", commit=False)
    clients("c").polled(TWO[:1], committed=True)
    assert clients.kinds() == [Kind.PRECOMMITTED_READ]


def test_an_abort_decides_a_commit_that_nobody_knew_of() -> None:
    clients = Clients()
    transaction(clients, "info")
    clients("p").end_transaction("x", commit=False).ok()
    clients("c").polled(TWO, committed=True)
    assert clients.kinds() == [Kind.ABORTED_READ] * 2


def test_nothing_is_seen_before_the_commit_is_asked_for() -> None:
    clients = Clients()
    clients("p").send("t-0", "a", "x").ok(offset=0)
    clients("c").polled([("t-0", 0, "a")], committed=True)
    assert clients.kinds() == [Kind.PRECOMMITTED_READ]
    clients("p").end_transaction("x", commit=True).ok()
    assert clients.kinds() == [Kind.PRECOMMITTED_READ]


def test_it_may_be_seen_before_the_commit_is_answered() -> None:
    clients = Clients()
    clients("p").send("t-0", "a", "x").ok(offset=0)
    end = clients("p").end_transaction("x", commit=True)
    clients("c").polled([("t-0", 0, "a")], committed=True)
    end.ok()
    assert clients.kinds(drained=True) == []


def test_a_commit_that_nobody_knows_of_is_whole_or_not_there() -> None:
    for ending in ("info", "never"):
        clients = Clients()
        transaction(clients, ending)
        assert clients.kinds(drained=True) == [], "not there"
        clients("c").polled(TWO[:1], committed=True)
        assert clients.kinds() == [], "the rest may come"
        assert Kind.TORN_TRANSACTION in clients.kinds(drained=True)
        clients("c").polled(TWO[1:], committed=True)
        assert clients.kinds(drained=True) == [], "whole"


def test_a_committed_transaction_of_which_a_part_is_missing_is_torn() -> None:
    clients = Clients()
    transaction(clients)
    clients("c").polled(TWO[1:], committed=True)
    assert clients.kinds() == []
    assert sorted(clients.kinds(drained=True)) == [Kind.TORN_TRANSACTION, Kind.UNSEEN]


def test_a_committed_transaction_that_is_missing_altogether_is_unseen() -> None:
    clients = Clients()
    transaction(clients)
    assert clients.kinds(drained=True) == [Kind.UNSEEN] * 2


def test_a_send_that_nobody_knows_of_need_not_be_in_its_transaction() -> None:
    clients = Clients()
    clients("p").send("t-0", "a", "x").ok(offset=0)
    clients("p").send("t-1", "b", "x").info()
    clients("p").end_transaction("x", commit=True).ok()
    clients("c").polled([("t-0", 0, "a")], committed=True)
    assert clients.kinds(drained=True) == []


def test_read_committed_may_pass_over_what_is_aborted_and_nothing_else() -> None:
    clients = Clients()
    for offset, (name, commit) in enumerate((("x", True), ("y", False), ("z", True))):
        clients("p").send("t-0", name, name).ok(offset=2 * offset)
        clients("p").end_transaction(name, commit=commit).ok()
    clients("c").polled([("t-0", 0, "x"), ("t-0", 4, "z")], committed=True)
    assert clients.kinds(drained=True) == []
    clients("d").polled([("t-0", 0, "x"), ("t-0", 4, "z")])
    assert clients.kinds(drained=True) == [Kind.POLL_SKIP], "read_uncommitted is to see it"


def test_records_outside_transactions_are_seen_by_both() -> None:
    clients = Clients()
    clients("p").send("t-0", "a").ok(offset=0)
    clients("c").polled([("t-0", 0, "a")], committed=True)
    clients("d").polled([("t-0", 0, "a")])
    assert clients.kinds(drained=True) == []
