from __future__ import annotations

import copy

import pytest

from ottla.protocol.messages.fetch import FetchRequest, ReplicaState
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.protocol.schema import Versions, fields_of, maker, replace
from ottla.protocol.stored.metadata import NoOpRecord


@pytest.mark.parametrize("text", ["3+", "0-12", "7"])
def test_versions_print_as_they_were_written(text: str) -> None:
    assert str(Versions.parse(text)) == text


def test_versions_contain_both_their_ends() -> None:
    versions = Versions.parse("3-5")
    assert [v for v in range(8) if v in versions] == [3, 4, 5]
    assert 1000 in Versions.parse("3+")


def test_every_field_may_be_left_out_and_then_has_kafkas_default() -> None:
    request = FetchRequest()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.replica_id == -1
    assert request.topics == []
    assert request.replica_state == ReplicaState(replica_id=-1, replica_epoch=-1)


def test_fields_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        MetadataRequestTopic("orders")  # type: ignore[misc, call-arg]


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(TypeError):
        MetadataRequest(topic=[])  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        MetadataRequest().topic = []  # type: ignore[attr-defined]


def test_two_messages_do_not_share_a_default_list() -> None:
    first, second = ProduceResponse(), ProduceResponse()
    first.node_endpoints.append(None)  # type: ignore[arg-type]
    assert second.node_endpoints == []


def test_a_shared_default_struct_refuses_to_be_changed() -> None:
    partition = PartitionProduceResponse(index=1)
    with pytest.raises(AttributeError, match="shared default"):
        partition.current_leader.leader_id = 5
    assert PartitionProduceResponse().current_leader.leader_id == -1


def test_a_copy_of_a_shared_default_can_be_changed() -> None:
    leader = copy.copy(PartitionProduceResponse().current_leader)
    leader.leader_id = 5
    assert leader.leader_id == 5


def test_messages_are_equal_when_their_fields_are() -> None:
    assert PartitionProduceResponse(index=1) == PartitionProduceResponse(index=1)
    assert PartitionProduceResponse(index=1) != PartitionProduceResponse(index=2)
    assert ProduceResponse() != MetadataRequest()


def test_a_message_prints_its_fields() -> None:
    assert repr(MetadataRequestTopic(name="orders")).startswith("MetadataRequestTopic(topic_id=Uuid(")
    assert "name='orders'" in repr(MetadataRequestTopic(name="orders"))


def test_replace_changes_a_copy() -> None:
    before = PartitionProduceResponse(index=1, base_offset=7)
    after = replace(before, index=2)
    assert (after.index, after.base_offset, before.index) == (2, 7, 1)


def test_a_maker_makes_what_the_class_does() -> None:
    make = maker(PartitionProduceResponse)
    made = make(index=1, base_offset=7)
    assert made == PartitionProduceResponse(index=1, base_offset=7)
    assert type(made) is PartitionProduceResponse
    assert make().record_errors is not make().record_errors
    with pytest.raises(TypeError):
        make(offset=7)  # type: ignore[call-arg]


def test_messages_without_fields_can_be_made() -> None:
    assert ListGroupsRequest() == maker(ListGroupsRequest)()
    assert NoOpRecord() == maker(NoOpRecord)()


def test_deep_copies_share_nothing() -> None:
    before = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    after = copy.deepcopy(before)
    assert after == before
    assert after.topics is not None and before.topics is not None
    after.topics[0].name = "b"
    assert before.topics[0].name == "a"


def test_the_stable_versions_leave_out_one_that_is_not() -> None:
    assert InitProducerIdRequest.versions == (0, 6)  # type: ignore[attr-defined]
    assert InitProducerIdRequest.stable == (0, 5)  # type: ignore[attr-defined]


def test_fields_say_what_was_declared() -> None:
    by_name = {field.name: field for field in fields_of(FetchRequest)}
    assert by_name["topics"].repeated and by_name["topics"].kind == "struct"
    assert by_name["cluster_id"].nullable == Versions.parse("12+")
    assert by_name["cluster_id"].tag == 0
    assert by_name["isolation_level"].kind == "b"
    assert by_name["replica_id"].versions == Versions.parse("0-14")
