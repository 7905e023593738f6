"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have, without the secrets (KIP-554)."""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class UserName:
    name: str = ""


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = field(default=[])


@struct
class CredentialInfo:
    mechanism: i8 = 0
    iterations: i32 = 0


@struct
class DescribeUserScramCredentialsResult:
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = field(default=[])


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default=[])
