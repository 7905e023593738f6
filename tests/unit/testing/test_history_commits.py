"""Committed offsets that are lost, come back, were never committed, or were taken from the wrong member."""

from __future__ import annotations

import pytest

from ottla.testing.history import Kind
from tests.unit.testing.histories import Clients


def committed(clients: Clients, offset: int, process: str = "m", generation: int | None = None) -> None:
    clients(process).commit("g", {"t-0": offset}, generation=generation).ok()


def found(clients: Clients, offset: int | None, *, stable: bool = False) -> list[Kind]:
    clients("f").fetch_offsets("g", stable=stable).ok(offsets={"t-0": offset})
    return clients.kinds(drained=True)


def test_the_last_commit_is_found() -> None:
    clients = Clients()
    assert found(clients, None) == []
    for offset in (3, 7, 5):  # a lower one on purpose
        committed(clients, offset)
        assert found(clients, offset) == []


def test_no_offset_where_one_was_committed_is_a_lost_commit() -> None:
    clients = Clients()
    committed(clients, 3)
    assert found(clients, None) == [Kind.LOST_COMMIT]


def test_an_older_commit_is_a_regression() -> None:
    clients = Clients()
    committed(clients, 3)
    committed(clients, 7)
    assert found(clients, 3) == [Kind.REGRESSED_COMMIT]


@pytest.mark.parametrize("offset", [2, 9])
def test_an_offset_that_nobody_committed_is_a_phantom(offset: int) -> None:
    clients = Clients()
    committed(clients, 3)
    assert found(clients, offset) == [Kind.PHANTOM_COMMIT]


def test_a_commit_that_failed_has_no_effect() -> None:
    clients = Clients()
    committed(clients, 3)
    clients("zombie").commit("g", {"t-0": 9}).fail(error="ILLEGAL_GENERATION")
    assert found(clients, 3) == []
    assert found(clients, 9) == [Kind.PHANTOM_COMMIT]


def test_groups_and_partitions_have_offsets_of_their_own() -> None:
    clients = Clients()
    clients("m").commit("g", {"t-0": 1, "t-1": 2}).ok()
    clients("m").commit("h", {"t-0": 3}).ok()
    clients("f").fetch_offsets("g").ok(offsets={"t-0": 1, "t-1": 2, "t-2": None})
    clients("f").fetch_offsets("h").ok(offsets={"t-0": 3, "t-1": None})
    assert clients.kinds() == []
    clients("f").fetch_offsets("h").ok(offsets={"t-0": 1})
    assert clients.kinds() == [Kind.PHANTOM_COMMIT]


def test_of_commits_at_one_time_either_may_be_the_last() -> None:
    for offset in (5, 6):
        clients = Clients()
        committed(clients, 3)
        first = clients("m").commit("g", {"t-0": 5})
        second = clients("n").commit("g", {"t-0": 6})
        first.ok()
        second.ok()
        assert found(clients, offset) == []
        assert found(clients, 3) == [Kind.REGRESSED_COMMIT]


def test_a_fetch_at_the_time_of_a_commit_may_find_it_or_the_one_before() -> None:
    for offset in (3, 7):
        clients = Clients()
        committed(clients, 3)
        fetch = clients("f").fetch_offsets("g")
        committed(clients, 7)
        fetch.ok(offsets={"t-0": offset})
        assert clients.kinds() == []


def test_a_fetch_that_failed_says_nothing() -> None:
    clients = Clients()
    committed(clients, 3)
    clients("f").fetch_offsets("g").fail(error="NOT_COORDINATOR")
    clients("f").fetch_offsets("g")
    assert clients.kinds() == []


def test_a_commit_that_nobody_knows_of_may_come_late() -> None:
    clients = Clients()
    committed(clients, 3)
    clients("m").commit("g", {"t-0": 5})
    assert found(clients, 3) == []
    committed(clients, 7)
    assert found(clients, 5) == []
    assert found(clients, 7) == []
    assert found(clients, 3) == [Kind.REGRESSED_COMMIT]


def test_a_commit_that_nobody_knows_of_is_fenced_by_a_newer_generation() -> None:
    clients = Clients()
    clients("m").commit("g", {"t-0": 5}, generation=1)
    committed(clients, 7, "n", generation=2)
    assert found(clients, 7) == []
    assert found(clients, 5) == [Kind.REGRESSED_COMMIT]


# --- who may commit ------------------------------------------------------------------------


def test_a_commit_of_an_old_generation_must_be_refused() -> None:
    clients = Clients()
    clients("m").assigned("g", ["t-0"], generation=1)
    clients("m").revoked("g", ["t-0"])
    clients("n").assigned("g", ["t-0"], generation=2)
    committed(clients, 7, "n", generation=2)
    clients("m").commit("g", {"t-0": 5}, generation=1).fail()
    assert clients.kinds() == []
    committed(clients, 5, "m", generation=1)
    assert clients.kinds() == [Kind.FENCED_COMMIT]


def test_a_commit_of_a_partition_with_a_new_owner_must_be_refused() -> None:
    clients = Clients()
    clients("m").assigned("g", ["t-0", "t-1"])
    clients("m").revoked("g", ["t-0"])
    clients("n").assigned("g", ["t-0"])
    clients("m").commit("g", {"t-1": 5}).ok()
    assert clients.kinds() == []
    clients("m").commit("g", {"t-0": 5}).ok()
    assert clients.kinds() == [Kind.FENCED_COMMIT]


def test_a_commit_that_began_before_the_new_owner_had_the_partition_may_be_taken() -> None:
    clients = Clients()
    clients("m").assigned("g", ["t-0"], generation=1)
    commit = clients("m").commit("g", {"t-0": 5}, generation=1)
    clients("m").revoked("g", ["t-0"])
    clients("n").assigned("g", ["t-0"], generation=2)
    commit.ok()
    assert clients.kinds() == []


def test_a_member_that_got_the_partition_back_may_commit() -> None:
    clients = Clients()
    for process, generation in (("m", 1), ("n", 2), ("m", 3)):
        clients(process).assigned("g", ["t-0"], generation=generation)
        committed(clients, generation, process, generation)
        clients(process).revoked("g", ["t-0"])
    assert clients.kinds() == []


def test_one_that_is_no_member_may_commit() -> None:
    """An administrator, while the group is empty."""
    clients = Clients()
    clients("m").assigned("g", ["t-0"], generation=4)
    clients("m").revoked("g", ["t-0"])
    committed(clients, 0, "admin")
    assert found(clients, 0) == []


# --- with transactions ---------------------------------------------------------------------


def in_transaction(clients: Clients, offset: int, name: str, outcome: str, *, commit: bool = True) -> None:
    clients("p").send("out-0", name, name).ok(offset=offset)
    clients("p").commit("g", {"t-0": offset}, transaction=name).ok()
    end = clients("p").end_transaction(name, commit=commit)
    if outcome != "never":
        getattr(end, outcome)()


def see(clients: Clients, offset: int, name: str) -> None:
    clients("c").polled([("out-0", offset, name)], committed=True)


def test_offsets_of_a_transaction_come_with_its_commit() -> None:
    clients = Clients()
    in_transaction(clients, 3, "x", "ok")
    see(clients, 3, "x")
    assert found(clients, 3, stable=True) == []
    assert found(clients, None, stable=True) == [Kind.LOST_COMMIT]


def test_offsets_of_an_aborted_transaction_do_not_come() -> None:
    clients = Clients()
    committed(clients, 1)
    in_transaction(clients, 3, "x", "ok", commit=False)
    assert found(clients, 1, stable=True) == []
    assert found(clients, 3, stable=True) == [Kind.TORN_TRANSACTION]


def test_offsets_of_a_transaction_that_was_refused_are_a_phantom() -> None:
    clients = Clients()
    clients("p").commit("g", {"t-0": 3}, transaction="x").fail(error="FENCED_INSTANCE_ID")
    clients("p").end_transaction("x", commit=False).ok()
    assert found(clients, 3, stable=True) == [Kind.PHANTOM_COMMIT]


def test_who_does_not_ask_for_stable_offsets_may_find_older_ones() -> None:
    clients = Clients()
    committed(clients, 1)
    in_transaction(clients, 3, "x", "ok")
    see(clients, 3, "x")
    assert found(clients, 1) == []
    assert found(clients, 1, stable=True) == [Kind.REGRESSED_COMMIT]


def test_records_and_offsets_of_a_transaction_come_together_or_not_at_all() -> None:
    for ending in ("info", "never"):
        clients = Clients()
        committed(clients, 1)
        in_transaction(clients, 3, "x", ending)
        assert found(clients, 1, stable=True) == [], "neither"
        assert found(clients, 3, stable=True) == [Kind.TORN_TRANSACTION], "only the offsets"
        see(clients, 3, "x")
        assert clients.kinds(drained=True) == [], "both"
