"""Answers to ApiVersions as a Kafka 2.1 would give them, whatever the broker behind knows.

2.1 is the oldest release whose clients Apache Kafka 4 still serves (KIP-896).
"""

from __future__ import annotations

import struct
from typing import Any

from kio.index import load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35

NEWEST = {
    "produce": 7,
    "fetch": 10,
    "list_offsets": 4,
    "metadata": 7,
    "offset_commit": 6,
    "offset_fetch": 5,
    "find_coordinator": 2,
    "join_group": 3,
    "heartbeat": 2,
    "leave_group": 2,
    "sync_group": 2,
    "describe_groups": 2,
    "list_groups": 2,
    "sasl_handshake": 1,
    "api_versions": 2,
    "create_topics": 3,
    "delete_topics": 3,
    "delete_records": 1,
    "init_producer_id": 1,
    "offset_for_leader_epoch": 2,
    "add_partitions_to_txn": 1,
    "add_offsets_to_txn": 1,
    "end_txn": 1,
    "txn_offset_commit": 2,
    "describe_acls": 1,
    "create_acls": 1,
    "delete_acls": 1,
    "describe_configs": 2,
    "alter_configs": 1,
    "alter_replica_log_dirs": 1,
    "describe_log_dirs": 1,
    "sasl_authenticate": 0,
    "create_partitions": 1,
    "delete_groups": 1,
}
"""The newest version of each API that clients use in Kafka 2.1."""


def as_kafka_2_1(version: int, frame: bytes) -> bytes:
    """The answer of a newer broker to an ApiVersions request of this version, made older."""
    correlation_id = frame[:4]
    if version > NEWEST["api_versions"]:
        # Brokers before 2.4 say no more than this; the client asks again with version 0.
        return correlation_id + struct.pack(">hi", UNSUPPORTED_VERSION, 0)
    schema: Any = load_response_schema(API_VERSIONS, version)
    found, _ = entity_reader(schema)(frame, len(correlation_id))
    known = [
        (api.api_key, api.min_version, min(api.max_version, NEWEST[api_key_map[api.api_key]]))
        for api in found.api_keys
        if api.min_version <= NEWEST.get(api_key_map.get(api.api_key, ""), -1)
    ]
    answer = correlation_id + struct.pack(">hi", 0, len(known))
    answer += b"".join(struct.pack(">hhh", *api) for api in known)
    return answer + (struct.pack(">i", 0) if version > 0 else b"")
