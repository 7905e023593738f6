"""The content of a partition's `.snapshot` files."""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct, u32


@struct
class ProducerEntry:
    producer_id: i64 = 0
    epoch: i16 = 0
    last_sequence: i32 = 0
    last_offset: i64 = 0
    offset_delta: i32 = 0
    timestamp: i64 = 0
    coordinator_epoch: i32 = 0
    current_txn_first_offset: i64 = 0


@message(versions="1")
class ProducerSnapshot:
    """The state of every producer at the snapshot's offset."""

    crc: u32 = 0
    producer_entries: list[ProducerEntry] = field(default=[])
