"""BrokerHeartbeat (key 63): a broker says that it is alive, and what state it wants (KIP-631).

v1 offline log directories (KIP-858); v2 cordoned log directories (KIP-1066).
"""

from __future__ import annotations

from ottla.core.ids import Uuid
from ottla.protocol.schema import field, i16, i32, i64, message


@message(key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest:
    broker_id: i32 = 0
    broker_epoch: i64 = -1
    current_metadata_offset: i64 = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[Uuid] = field("1+", default=[], tag=0)
    cordoned_log_dirs: list[Uuid] | None = field("2+", default=None, tag=1)


@message(key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
