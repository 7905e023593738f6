"""What a request does to the registry: the records to write, decided on the image that has all before them.

Nothing here changes the image: that is what the records do, once they are written. Each raises the error that
the client is to see, and is then nothing to write.
"""

from __future__ import annotations

from typing import Final

from ottla.registry import records
from ottla.registry.errors import (
    ConfigNotFound,
    InvalidVersion,
    ModeNotFound,
    NotPermitted,
    ReferenceExists,
    RegistryError,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from ottla.registry.image import Image
from ottla.registry.levels import Level, Mode
from ottla.registry.records import GREATEST_NUMBER, Change
from ottla.registry.schemas import Registered, Schema

LATEST: Final = -1
# An id that the registry is to choose.
NO_ID: Final = -1


# Versions


def version_number(text: str) -> int:
    """A version as it stands in a path: a number, `latest`, or -1, which means the same."""
    if text in ("latest", "-1"):
        return LATEST
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 1 <= number <= GREATEST_NUMBER:
        raise InvalidVersion(
            f"The specified version '{text[:200]}' is not a valid version id. Allowed values are between "
            '[1, 2^31-1] and the string "latest"'
        )
    return number


def find_version(image: Image, subject: str, version: int, *, deleted: bool = False) -> Registered:
    found = image.versions(subject, deleted=deleted)
    if not found:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    for each in reversed(found):
        if version in (LATEST, each.version):
            return each
    raise VersionNotFound(f"Version {version} not found.")


def find_schema(image: Image, subject: str, schema: Schema, *, deleted: bool = False) -> Registered | None:
    """The newest version of a subject that has this schema."""
    for each in reversed(image.versions(subject, deleted=deleted)):
        if each.schema == schema:
            return each
    return None


# Registering


def check_may_register(image: Image, subject: str, schema_id: int) -> None:
    mode = image.mode_of(subject)
    if mode.is_read_only:
        raise NotPermitted(f"Subject {subject} is in read-only mode")
    if schema_id != NO_ID and not mode.brings_ids:
        raise NotPermitted(f"Subject {subject} is not in import mode")
    if schema_id == NO_ID and mode is not Mode.READWRITE:
        raise NotPermitted(f"Subject {subject} is not in read-write mode")


def register(
    image: Image, subject: str, schema: Schema, schema_id: int = NO_ID, version: int = 0
) -> tuple[Registered, list[Change]]:
    """Make a schema a version of a subject: the next one, unless `version` says which."""
    known = image.versions(subject, deleted=True)
    following = known[-1].version + 1 if known else 1
    if version <= 0:
        version = following
    elif version != following and not image.mode_of(subject).brings_ids:
        raise NotPermitted("Version is not one more than previous version")
    if schema_id == NO_ID:
        schema_id = image.ids.get(schema, image.last_id + 1)
    elif image.schemas.get(schema_id, schema) != schema:
        raise NotPermitted(f"Overwrite new schema with id {schema_id} is not permitted.")
    # A version that was deleted and comes back as a new one leaves its place, unless others point to it.
    changes = [
        records.removed(subject, each.version)
        for each in known
        if each.deleted
        and each.id == schema_id
        and each.version < version
        and not image.users_of(subject, each.version, deleted=True)
    ]
    if max(schema_id, version) > GREATEST_NUMBER:
        raise RegistryError(f"There is no id and no version after {GREATEST_NUMBER}, which is taken")
    made = Registered(subject, version, schema_id, schema)
    return made, [*changes, records.registered(made)]


# Deleting


def delete_version(image: Image, subject: str, version: int, *, permanent: bool) -> tuple[int, list[Change]]:
    if permanent or version == LATEST:
        found = find_version(image, subject, version, deleted=permanent)
    else:
        found = find_version(image, subject, version, deleted=True)
        if found.deleted:
            raise VersionSoftDeleted(
                f"Subject '{subject}' Version {version} was soft deleted."
                "Set permanent=true to delete permanently"
            )
    _check_writable(image, subject)
    _check_unused(image, found, permanent, by_others=False)
    if not permanent:
        gone = Registered(subject, found.version, found.id, found.schema, deleted=True)
        return found.version, [records.registered(gone)]
    if not found.deleted:
        raise VersionNotSoftDeleted(
            f"Subject '{subject}' Version {found.version} was not deleted first before being permanently "
            "deleted"
        )
    changes = [records.removed(subject, found.version)]
    if len(image.subjects[subject]) == 1:
        changes += _settings_removed(image, subject)
    return found.version, changes


def delete_subject(image: Image, subject: str, *, permanent: bool) -> tuple[list[int], list[Change]]:
    known = image.versions(subject, deleted=True)
    if not known:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    _check_writable(image, subject)
    gone = known if permanent else image.versions(subject)
    if not gone:
        raise SubjectSoftDeleted(
            f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
        )
    for each in gone:
        _check_unused(image, each, permanent, by_others=True)
        if permanent and not each.deleted:
            raise SubjectNotSoftDeleted(
                f"Subject '{subject}' was not deleted first before being permanently deleted"
            )
    numbers = [each.version for each in gone]
    if not permanent:
        return numbers, [records.subject_deleted(subject, numbers[-1])]
    # The newest first: within a subject a version may refer to one before it.
    changes = [records.removed(subject, number) for number in reversed(numbers)]
    return numbers, changes + _settings_removed(image, subject)


def _check_unused(image: Image, version: Registered, permanent: bool, *, by_others: bool) -> None:
    users = image.users_of(version.subject, version.version, deleted=permanent)
    if any(not by_others or each.subject != version.subject for each in users):
        raise ReferenceExists(
            f"One or more references exist to the schema {{subject={version.subject},"
            f"version={version.version}}}"
        )


def _settings_removed(image: Image, subject: str) -> list[Change]:
    changes = [records.mode_set(subject, None)] if subject in image.modes else []
    return changes + ([records.level_set(subject, None)] if subject in image.levels else [])


# Settings


def set_level(image: Image, subject: str | None, level: Level) -> list[Change]:
    _check_writable(image, subject)
    return [records.level_set(subject, level)]


def delete_level(image: Image, subject: str | None) -> tuple[Level, list[Change]]:
    """The level that it was before."""
    _check_writable(image, subject)
    if subject is None:
        return image.level_of(None), [records.level_set(None, None)]
    if subject not in image.levels:
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    return image.levels[subject], [records.level_set(subject, None)]


def level_of_its_own(image: Image, subject: str) -> Level:
    level = image.levels.get(subject)
    if level is None:
        raise ConfigNotFound(f"Subject '{subject}' does not have subject-level compatibility configured")
    return level


def set_mode(image: Image, subject: str | None, mode: Mode, *, force: bool) -> list[Change]:
    if mode is Mode.IMPORT and image.mode_of(subject) is not Mode.IMPORT and not force:
        names = list(image.subjects) if subject is None else [subject]
        if any(image.versions(name) for name in names):
            raise NotPermitted("Cannot import since found existing subjects")
    return [records.mode_set(subject, mode)]


def delete_mode(image: Image, subject: str | None) -> tuple[Mode, list[Change]]:
    """The mode that it was before."""
    if subject is None:
        return image.mode_of(None), [records.mode_set(None, None)]
    return mode_of_its_own(image, subject), [records.mode_set(subject, None)]


def mode_of_its_own(image: Image, subject: str) -> Mode:
    mode = image.modes.get(subject)
    if mode is None:
        raise ModeNotFound(f"Subject '{subject}' does not have subject-level mode configured")
    return mode


def _check_writable(image: Image, subject: str | None) -> None:
    if image.mode_of(subject).is_read_only:
        raise NotPermitted(f"Subject {subject} is in read-only mode")
