"""CreateDelegationToken (key 38): create a delegation token.

v2 flexible; v3 a token for another owner, and who requested it (KIP-373).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class CreatableRenewers:
    principal_type: str = ""
    principal_name: str = ""


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = field("3+", default="")
    owner_principal_name: str | None = field("3+", default="")
    renewers: list[CreatableRenewers] = field(default=[])
    max_lifetime_ms: i64 = 0


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: i16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = field("3+", default="")
    token_requester_principal_name: str = field("3+", default="")
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0
    max_timestamp_ms: i64 = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", secret=True)
    throttle_time_ms: i32 = 0
