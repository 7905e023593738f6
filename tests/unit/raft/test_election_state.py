"""The quorum-state file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.raft.election_state import ElectionState, from_json, to_json


def test_the_file_is_written_as_kafka_writes_it() -> None:
    state = ElectionState(epoch=1, leader_id=1)
    assert to_json(state, 1, "cluster", (1,)) == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert json.loads(to_json(state, 0, "cluster", (1,))) == {
        "clusterId": "cluster",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


@given(
    st.builds(
        ElectionState,
        st.integers(0, 2**31 - 1),
        st.integers(-1, 100),
        st.integers(-1, 100),
        st.binary(min_size=16, max_size=16).map(Uuid),
    )
)
def test_the_file_reads_back(state: ElectionState) -> None:
    assert from_json(to_json(state, 1, "cluster", (1,))) == state
    assert from_json(to_json(state, 0, "cluster", (1,))) == state._replace(voted_directory_id=ZERO_UUID)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"{}", b'{"data_version":7}', b'{"leaderId":1,"data_version":1}', b"\xff"]
)
def test_a_damaged_file_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(data)
