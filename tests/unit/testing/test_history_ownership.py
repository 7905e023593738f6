"""Partitions with two owners, and those that only seem to have them."""

from __future__ import annotations

from ottla.testing.history import Kind
from tests.unit.testing.histories import Clients


def test_partitions_that_go_from_hand_to_hand_have_one_owner() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0", "t-1"])
    clients("a").revoked("g", ["t-1"])
    clients("b").assigned("g", ["t-1"])
    clients("b").revoked("g", ["t-1"])
    clients("a").revoked("g", ["t-0"])
    clients("b").assigned("g", ["t-0", "t-1"])
    assert clients.kinds() == []


def test_a_partition_given_before_it_was_revoked_has_two() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0", "t-1"])
    clients("b").assigned("g", ["t-1"])
    clients("a").revoked("g", ["t-1"])
    assert clients.kinds() == [Kind.OWNERSHIP_OVERLAP]


def test_a_partition_never_revoked_has_two() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"])
    clients("b").assigned("g", ["t-0"])
    assert clients.kinds() == [Kind.OWNERSHIP_OVERLAP]


def test_an_overlap_with_an_owner_of_long_ago_is_found() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"])
    clients("b").assigned("g", ["t-0"])
    clients("b").revoked("g", ["t-0"])
    clients("c").assigned("g", ["t-0"])
    assert clients.kinds() == [Kind.OWNERSHIP_OVERLAP] * 2


def test_two_members_of_one_generation_never_own_one_partition() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"], generation=3)
    clients("a").revoked("g", ["t-0"])
    clients("b").assigned("g", ["t-0"], generation=3)
    assert clients.kinds() == [Kind.OWNERSHIP_OVERLAP]


def test_the_next_generation_may_give_it_to_another() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"], generation=3)
    clients("a").revoked("g", ["t-0"])
    clients("b").assigned("g", ["t-0"], generation=4)
    assert clients.kinds() == []


def test_groups_and_partitions_are_told_apart() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"], generation=1)
    clients("b").assigned("h", ["t-0"], generation=1)
    clients("c").assigned("g", ["t-1"], generation=1)
    assert clients.kinds() == []


def test_a_crashed_member_owns_nothing() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"])
    clients("test").crashed("a")
    clients("b").assigned("g", ["t-0"])
    assert clients.kinds() == []


def test_one_that_crashed_too_late_did() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"])
    clients("b").assigned("g", ["t-0"])
    clients("test").crashed("a")
    assert clients.kinds() == [Kind.OWNERSHIP_OVERLAP]


def test_a_member_that_was_expelled_may_hear_of_it_late() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"])
    clients("b").assigned("g", ["t-0"])
    clients("a").lost("g", ["t-0"])
    assert clients.kinds() == []


def test_being_told_again_changes_nothing() -> None:
    clients = Clients()
    clients("a").assigned("g", ["t-0"], generation=1)
    clients("a").assigned("g", ["t-0"], generation=2)
    clients("a").revoked("g", ["t-0"])
    clients("b").assigned("g", ["t-0"], generation=3)
    assert clients.kinds() == []


def test_a_static_member_is_itself_in_another_process() -> None:
    clients = Clients()
    clients("a1").assigned("g", ["t-0"], member="a", generation=1)
    clients("a2").assigned("g", ["t-0"], member="a", generation=1)
    assert clients.kinds() == []
