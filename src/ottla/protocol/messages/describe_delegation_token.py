"""DescribeDelegationToken (key 41): the delegation tokens of some owners.

v2 flexible; v3 who requested the token (KIP-373).
"""

from __future__ import annotations

from ottla.protocol.schema import field, i16, i32, i64, message, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = ""
    principal_name: str = ""


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = field(default=[])


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = ""
    principal_name: str = ""


@struct
class DescribedDelegationToken:
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = field("3+", default="")
    token_requester_principal_name: str = field("3+", default="")
    issue_timestamp: i64 = 0
    expiry_timestamp: i64 = 0
    max_timestamp: i64 = 0
    token_id: str = ""
    hmac: bytes = field(default=b"", secret=True)
    renewers: list[DescribedDelegationTokenRenewer] = field(default=[])


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: i16 = 0
    tokens: list[DescribedDelegationToken] = field(default=[])
    throttle_time_ms: i32 = 0
