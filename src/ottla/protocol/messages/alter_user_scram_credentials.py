"""AlterUserScramCredentials (key 51): set or remove SCRAM credentials (KIP-554)."""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class ScramCredentialDeletion:
    name: str = ""
    mechanism: i8 = 0


@struct
class ScramCredentialUpsertion:
    name: str = ""
    mechanism: i8 = 0
    iterations: i32 = 0
    salt: bytes = field(default=b"", secret=True)
    salted_password: bytes = field(default=b"", secret=True)


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = field(default=[])
    upsertions: list[ScramCredentialUpsertion] = field(default=[])


@struct
class AlterUserScramCredentialsResult:
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = field(default=[])
