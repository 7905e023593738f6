"""Registering, deleting and settings: commands on an image, and the records that they make applied to it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

import pytest

from ottla.registry import commands
from ottla.registry.errors import (
    ConfigNotFound,
    InvalidVersion,
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
from ottla.registry.records import Change
from ottla.registry.schemas import Reference, Registered, Schema, SchemaType

STRING, LONG, INT = (Schema(SchemaType.AVRO, f'"{name}"') for name in ("string", "long", "int"))


def apply(image: Image, changes: Sequence[Change]) -> None:
    for change in changes:
        image.apply(change.key, change.value)


def register(image: Image, subject: str, schema: Schema, **how: int) -> Registered:
    made, changes = commands.register(image, subject, schema, **how)
    apply(image, changes)
    assert image.subjects[subject][made.version] == made
    return made


def delete(image: Image, subject: str, version: int, permanent: bool = False) -> int:
    number, changes = commands.delete_version(image, subject, version, permanent=permanent)
    apply(image, changes)
    return number


def delete_subject(image: Image, subject: str, permanent: bool = False) -> list[int]:
    numbers, changes = commands.delete_subject(image, subject, permanent=permanent)
    apply(image, changes)
    return numbers


def test_versions_and_ids_count_from_one() -> None:
    image = Image()
    made = [register(image, "a", STRING), register(image, "a", LONG), register(image, "b", INT)]
    assert [(each.subject, each.version, each.id) for each in made] == [("a", 1, 1), ("a", 2, 2), ("b", 1, 3)]


def test_the_same_schema_has_the_same_id_in_every_subject() -> None:
    image = Image()
    assert register(image, "a", STRING).id == register(image, "b", STRING).id == 1
    assert [each.subject for each in image.with_id(1)] == ["a", "b"]
    other = Schema(SchemaType.JSON, STRING.text)
    assert register(image, "c", other).id == 2, "one in another language is another"


def test_a_version_is_found_by_number_and_as_the_latest() -> None:
    image = Image()
    first, second = register(image, "a", STRING), register(image, "a", LONG)
    assert commands.find_version(image, "a", 1) == first
    assert commands.find_version(image, "a", commands.LATEST) == second
    with pytest.raises(VersionNotFound):
        commands.find_version(image, "a", 3)
    with pytest.raises(SubjectNotFound):
        commands.find_version(image, "b", 1)


@pytest.mark.parametrize("text", ["0", "-2", "first", "", "1.5", "2147483648", "9" * 5_000, "²"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidVersion):
        commands.version_number(text)


def test_a_deleted_version_is_gone_for_now_and_keeps_its_number() -> None:
    image = Image()
    register(image, "a", STRING)
    register(image, "a", LONG)
    assert delete(image, "a", commands.LATEST) == 2
    assert [each.version for each in image.versions("a")] == [1]
    assert [each.version for each in image.versions("a", deleted=True)] == [1, 2]
    assert image.schemas[2] == LONG, "what was written with it can still be read"
    with pytest.raises(VersionSoftDeleted):
        delete(image, "a", 2)
    assert register(image, "a", INT).version == 3


def test_a_version_goes_for_good_only_after_it_was_deleted() -> None:
    image = Image()
    register(image, "a", STRING)
    with pytest.raises(VersionNotSoftDeleted):
        delete(image, "a", 1, permanent=True)
    delete(image, "a", 1)
    apply(image, commands.set_level(image, "a", Level.NONE))
    assert delete(image, "a", 1, permanent=True) == 1
    assert not image.subjects and not image.schemas and not image.ids
    assert not image.levels, "the last version takes the subject's settings with it"
    with pytest.raises(SubjectNotFound):
        delete(image, "a", 1, permanent=True)


def test_ids_of_what_is_gone_are_not_given_again() -> None:
    image = Image()
    register(image, "a", STRING)
    delete_subject(image, "a")
    delete_subject(image, "a", permanent=True)
    assert register(image, "b", LONG).id == 2


def test_a_deleted_schema_comes_back_as_a_new_version_with_its_old_id() -> None:
    image = Image()
    register(image, "a", STRING)
    register(image, "a", LONG)
    delete(image, "a", 1)
    again = register(image, "a", STRING)
    assert (again.version, again.id) == (3, 1)
    assert [each.version for each in image.versions("a", deleted=True)] == [2, 3]


def test_a_subject_is_deleted_with_all_its_versions() -> None:
    image = Image()
    for schema in (STRING, LONG, INT):
        register(image, "a", schema)
    delete(image, "a", 2)
    with pytest.raises(SubjectNotSoftDeleted):
        delete_subject(image, "a", permanent=True)
    assert delete_subject(image, "a") == [1, 3]
    assert image.versions("a") == []
    with pytest.raises(SubjectSoftDeleted):
        delete_subject(image, "a")
    assert delete_subject(image, "a", permanent=True) == [1, 2, 3]
    with pytest.raises(SubjectNotFound):
        delete_subject(image, "a")


def test_what_others_refer_to_cannot_be_deleted() -> None:
    image = Image()
    register(image, "used", STRING)
    user = Schema(SchemaType.AVRO, '"user"', (Reference("used", "used", 1),))
    register(image, "user", user)
    assert [each.subject for each in image.users_of("used", 1)] == ["user"]
    for refused in (lambda: delete(image, "used", 1), lambda: delete_subject(image, "used")):
        with pytest.raises(ReferenceExists):
            refused()
    delete_subject(image, "user")
    delete_subject(image, "used")
    with pytest.raises(ReferenceExists):
        delete_subject(image, "used", permanent=True)  # it may yet be undeleted
    delete_subject(image, "user", permanent=True)
    delete_subject(image, "used", permanent=True)
    assert not image.subjects


def test_a_subject_may_refer_to_itself_and_still_be_deleted() -> None:
    image = Image()
    register(image, "a", STRING)
    register(image, "a", Schema(SchemaType.AVRO, '"second"', (Reference("first", "a", 1),)))
    assert delete_subject(image, "a") == [1, 2]
    assert delete_subject(image, "a", permanent=True) == [1, 2]


def test_a_subject_has_the_level_of_all_until_it_has_its_own() -> None:
    image = Image()
    assert image.level_of("a") is image.level_of(None) is Level.BACKWARD
    apply(image, commands.set_level(image, None, Level.FULL))
    assert image.level_of("a") is Level.FULL
    with pytest.raises(ConfigNotFound):
        commands.level_of_its_own(image, "a")
    apply(image, commands.set_level(image, "a", Level.NONE))
    assert (image.level_of("a"), image.level_of("b")) == (Level.NONE, Level.FULL)
    before, changes = commands.delete_level(image, "a")
    apply(image, changes)
    assert (before, image.level_of("a")) == (Level.NONE, Level.FULL)
    apply(image, commands.delete_level(image, None)[1])
    assert image.level_of(None) is Level.BACKWARD


def test_nothing_is_changed_where_it_may_only_be_read() -> None:
    image = Image()
    register(image, "a", STRING)
    apply(image, commands.set_mode(image, "a", Mode.READONLY, force=False))
    with pytest.raises(NotPermitted):
        commands.check_may_register(image, "a", commands.NO_ID)
    for refused in (
        lambda: delete(image, "a", 1),
        lambda: delete_subject(image, "a"),
        lambda: commands.set_level(image, "a", Level.NONE),
    ):
        with pytest.raises(NotPermitted):
            refused()
    commands.check_may_register(image, "b", commands.NO_ID)
    apply(image, commands.delete_mode(image, "a")[1])
    commands.check_may_register(image, "a", commands.NO_ID)


def test_an_override_for_all_is_stronger_than_what_a_subject_says() -> None:
    image = Image()
    apply(image, commands.set_mode(image, "a", Mode.READWRITE, force=False))
    apply(image, commands.set_mode(image, None, Mode.READONLY, force=False))
    assert image.mode_of("a") is Mode.READWRITE
    apply(image, commands.set_mode(image, None, Mode.READONLY_OVERRIDE, force=False))
    assert image.mode_of("a") is Mode.READONLY_OVERRIDE


def test_ids_are_brought_along_in_import_mode_only() -> None:
    image = Image()
    with pytest.raises(NotPermitted):
        commands.check_may_register(image, "a", 7)
    apply(image, commands.set_mode(image, "a", Mode.IMPORT, force=False))
    commands.check_may_register(image, "a", 7)
    with pytest.raises(NotPermitted):
        commands.check_may_register(image, "a", commands.NO_ID)
    made = register(image, "a", STRING, schema_id=7, version=5)
    assert (made.id, made.version) == (7, 5)
    with pytest.raises(NotPermitted, match="Overwrite"):
        commands.register(image, "a", LONG, schema_id=7)
    assert register(image, "b", LONG).id == 8


def test_import_mode_is_for_subjects_that_have_nothing_yet() -> None:
    image = Image()
    register(image, "a", STRING)
    for subject in ("a", None):
        with pytest.raises(NotPermitted):
            commands.set_mode(image, subject, Mode.IMPORT, force=False)
        assert commands.set_mode(image, subject, Mode.IMPORT, force=True)
    assert commands.set_mode(image, "b", Mode.IMPORT, force=False)


def test_every_error_has_a_status() -> None:
    for kind in (RegistryError, *RegistryError.__subclasses__()):
        assert HTTPStatus(kind("x").status) >= HTTPStatus.BAD_REQUEST
