"""Errors of the registry, with the codes that its clients know."""

from __future__ import annotations


class RegistryError(Exception):
    """Answered as JSON: the code, of which the first three digits are the HTTP status, and the message."""

    code = 50001

    @property
    def status(self) -> int:
        return int(str(self.code)[:3])


class SubjectNotFound(RegistryError):
    code = 40401


class VersionNotFound(RegistryError):
    code = 40402


class SchemaNotFound(RegistryError):
    code = 40403


class SubjectSoftDeleted(RegistryError):
    code = 40404


class SubjectNotSoftDeleted(RegistryError):
    code = 40405


class VersionSoftDeleted(RegistryError):
    code = 40406


class VersionNotSoftDeleted(RegistryError):
    code = 40407


class ConfigNotFound(RegistryError):
    code = 40408


class ModeNotFound(RegistryError):
    code = 40409


class Incompatible(RegistryError):
    code = 40901


class InvalidSchema(RegistryError):
    code = 42201


class InvalidVersion(RegistryError):
    code = 42202


class InvalidCompatibility(RegistryError):
    code = 42203


class InvalidMode(RegistryError):
    code = 42204


class NotPermitted(RegistryError):
    code = 42205


class ReferenceExists(RegistryError):
    code = 42206


class InvalidSubject(RegistryError):
    code = 42208


class SchemaTooLarge(RegistryError):
    code = 42209


class Unauthorized(RegistryError):
    code = 40301


class BadRequest(RegistryError):
    code = 400


class NothingHere(RegistryError):
    code = 404


class UnsupportedMediaType(RegistryError):
    code = 415


class Busy(RegistryError):
    code = 503


class StoreTimeout(RegistryError):
    code = 50002


class ForwardingFailed(RegistryError):
    code = 50003


class UnknownLeader(RegistryError):
    code = 50004
