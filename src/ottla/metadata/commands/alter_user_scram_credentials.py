"""AlterUserScramCredentials (key 51). What is kept are keys, from which no password can be read.

A salt or a salted password that is empty is refused: nobody could log in with it. Kafka takes the one and
fails on the other.
"""

from __future__ import annotations

from ottla.core.scram import BY_NUMBER, MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, keys
from ottla.metadata.image import MetadataRecord
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.metadata.versions import MV_SCRAM
from ottla.protocol.errors import (
    DuplicateResource,
    KafkaError,
    PolicyViolation,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.stored.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord


def alter_user_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest, context: Context
) -> Decision:
    asked: list[ScramCredentialDeletion | ScramCredentialUpsertion]
    asked = [*request.deletions, *request.upsertions]
    is_too_much = len(asked) > MAX_RECORDS_PER_REQUEST
    records: dict[str, MetadataRecord] = {}
    errors: dict[str, KafkaError] = {}
    for each in asked:
        if each.name in errors:
            continue
        try:
            if is_too_much:
                raise PolicyViolation("Unable to perform excessively large batch operation.")
            if records.pop(each.name, None) is not None:
                raise DuplicateResource("A user credential cannot be altered twice in the same request")
            records[each.name] = _altered(state, each)
        except KafkaError as error:
            errors[each.name] = error
    results = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in records]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=str(error))
        for name, error in errors.items()
    ]
    return Decision(list(records.values()), AlterUserScramCredentialsResponse(results=results))


def _altered(
    state: ControllerState, asked: ScramCredentialDeletion | ScramCredentialUpsertion
) -> MetadataRecord:
    if state.image.metadata_version < MV_SCRAM:
        raise UnsupportedVersion("The current metadata.version does not support SCRAM")
    if not asked.name:
        raise UnacceptableCredential("Username must not be empty")
    mechanism = BY_NUMBER.get(asked.mechanism)
    if mechanism is None:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    if isinstance(asked, ScramCredentialUpsertion):
        return _credential(asked, mechanism)
    if (asked.mechanism, asked.name) not in state.image.scram:
        raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=asked.name, mechanism=mechanism)


def _credential(asked: ScramCredentialUpsertion, mechanism: ScramMechanism) -> UserScramCredentialRecord:
    if asked.iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    if asked.iterations > MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")
    if not asked.salt:
        raise UnacceptableCredential("Salt must not be empty")
    if not asked.salted_password:
        raise UnacceptableCredential("Salted password must not be empty")
    derived = keys(mechanism, asked.salted_password)
    return UserScramCredentialRecord(
        name=asked.name,
        mechanism=mechanism,
        salt=asked.salt,
        stored_key=derived.stored_key,
        server_key=derived.server_key,
        iterations=asked.iterations,
    )
