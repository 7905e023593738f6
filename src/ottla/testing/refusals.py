"""An answer that refuses a whole request with one error, for any API.

Where an answer has an error for the request as a whole, it goes there. Where it has one for each partition,
topic or group, the answer needs an entry for everything that the request names: request and answer are built
alike in Kafka's protocol, so the lists of one are found by the names that they share with those of the other.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.protocol.errors import KafkaError
from ottla.protocol.schema import Field, fields_of
from ottla.server.routes import Route

FETCH: Final = 1
METADATA: Final = 3
ERROR_FIELDS: Final = ("error_code", "partition_error_code")
# The same thing under the names that different APIs, or both sides of one, give it.
SAME: Final = {
    "index": "partition_index",
    "partition": "partition_index",
    "topic": "name",
    "topic_name": "name",
    "key": "group_id",
    "coordinator_key": "group_id",
}

# What Kafka answers as -1 where there is an error, although the field's default is another.
UNKNOWN_WHEN_REFUSED: Final = ("base_offset", "committed_offset", "high_watermark", "node_id", "port")


def refusal(route: Route, request: Any, error: type[KafkaError], answer: Any | None = None) -> Any:
    """The answer to `request` that says `error`; made from `answer` if there is already a good one."""
    version = route.version
    if route.key == METADATA and answer is not None:
        for topic in answer.topics:
            topic.error_code, topic.partitions = error.code, []
        return answer
    made = route.response_class()
    # A fetch has an error for the request as well, but only errors of its session belong there.
    names_partitions = route.key == FETCH and request.topics and "SESSION" not in error.name
    if not names_partitions and _set_error(made, version, error):
        return made
    _mirror(request, made, version, error)
    return made


def _fields(message: Any) -> tuple[Field, ...]:
    cls: Any = type(message)
    return fields_of(cls)


def _set_error(made: Any, version: int, error: type[KafkaError]) -> bool:
    """Put the error into this struct, if it has a place for one in this version."""
    for field in _fields(made):
        if field.name in ERROR_FIELDS and version in field.versions:
            setattr(made, field.name, error.code)
            return True
    return False


def _mirror(asked: Any, made: Any, version: int, error: type[KafkaError]) -> None:
    """Fill the lists of an answer with an entry for each entry of the list it answers."""
    for field in _fields(made):
        if (
            field.kind != "struct"
            or not field.repeated
            or version not in field.versions
            or field.tag is not None
        ):
            continue
        source = _list_like(asked, field, version)
        if source is not None:
            entries = [_entry(each, field, version, error) for each in getattr(asked, source.name) or ()]
            setattr(made, field.name, entries)


def _list_like(asked: Any, field: Field, version: int) -> Field | None:
    """The list of the request that a list of the answer is about: the one with most names in common."""
    best: tuple[int, Field] | None = None
    wanted = _names(field.struct, version)
    for each in _fields(asked):
        if not each.repeated or version not in each.versions:
            continue
        common = len(wanted & _names(each.struct, version)) if each.kind == "struct" else 1
        if common and (best is None or common > best[0]):
            best = common, each
    return None if best is None else best[1]


def _names(cls: Any, version: int) -> set[str]:
    return {
        SAME.get(field.name, field.name)
        for field in fields_of(cls)
        if version in field.versions and not field.repeated and field.name not in ERROR_FIELDS
    }


def _entry(asked: Any, field: Field, version: int, error: type[KafkaError]) -> Any:
    made = field.struct()
    own = [each for each in fields_of(field.struct) if version in each.versions]
    if not hasattr(type(asked), "__declared__"):  # a list of plain names or numbers
        kind = "str" if isinstance(asked, str) else "i"
        name = next(each.name for each in own if each.kind == kind and each.name not in ERROR_FIELDS)
        setattr(made, name, asked)
    else:
        given = {SAME.get(each.name, each.name): getattr(asked, each.name) for each in _fields(asked)}
        for each in own:
            name = SAME.get(each.name, each.name)
            if name in given and not each.repeated and each.kind != "struct" and "timestamp" not in name:
                setattr(made, each.name, given[name])
    for each in own:
        if each.kind == "records":
            setattr(made, each.name, b"")
        elif each.name in UNKNOWN_WHEN_REFUSED:
            setattr(made, each.name, -1)
    if not _set_error(made, version, error):
        _mirror(asked, made, version, error)
    return made
