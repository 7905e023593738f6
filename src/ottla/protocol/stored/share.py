"""Records of `__share_group_state`, where the share coordinator keeps what was delivered (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.schema import field, i8, i16, i32, i64, message, struct


@message(key=0, versions="0")
class ShareSnapshotKey:
    """The key of a snapshot."""

    group_id: str = ""
    topic_id: Uuid = ZERO_UUID
    partition: i32 = 0


@struct
class StateBatch:
    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0
    delivery_count: i16 = 0


@message(key=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    """The whole state of a share partition."""

    snapshot_epoch: i32 = 0
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = field(default=-1, tag=0)
    create_timestamp: i64 = 0
    write_timestamp: i64 = 0
    state_batches: list[StateBatch] = field(default=[])


@message(key=1, versions="0")
class ShareUpdateKey:
    """The key of an update."""

    group_id: str = ""
    topic_id: Uuid = ZERO_UUID
    partition: i32 = 0


@message(key=1, versions="0", flexible="0+")
class ShareUpdateValue:
    """What changed in a share partition since its snapshot."""

    snapshot_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = field(default=-1, tag=0)
    state_batches: list[StateBatch] = field(default=[])
