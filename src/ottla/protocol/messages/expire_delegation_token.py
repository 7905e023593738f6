"""ExpireDelegationToken (key 40): shorten or end the life of a delegation token.

v2 flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest:
    hmac: bytes = field(default=b"", secret=True)
    expiry_time_period_ms: i64 = 0


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0
