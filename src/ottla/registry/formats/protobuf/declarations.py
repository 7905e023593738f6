"""The declarations of .proto text: files, messages, enums and services.

A parser by recursive descent over the words; what it makes is in `syntax`. It takes what protoc takes,
and as Confluent's registry does, fields of proto2 that have no label.
"""

from __future__ import annotations

from ottla.registry.errors import InvalidSchema
from ottla.registry.formats.protobuf.cursor import Cursor
from ottla.registry.formats.protobuf.syntax import (
    LARGEST_ENUM_NUMBER,
    LARGEST_FIELD_NUMBER,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    Message,
    MessageMember,
    Method,
    Oneof,
    Option,
    Reserved,
    Service,
)
from ottla.registry.formats.protobuf.tokens import Kind

_LABELS = ("optional", "required", "repeated")
_EDITIONS = ("2023",)


def read_file(text: str) -> File:
    """What a .proto file declares. Raises InvalidSchema with line and column."""
    cursor = Cursor(text)
    file = File()
    if cursor.is_at("syntax", "edition") and cursor.is_before("="):
        _read_syntax(cursor, file)
    has_package = False
    while cursor.token.kind is not Kind.END:
        where = cursor.where
        if cursor.skip("import"):
            modifier = cursor.next().text if cursor.is_at("public", "weak") else None
            file.imports.append(Import(cursor.text(), modifier, where))
            cursor.expect(";")
        elif cursor.skip("package"):
            if has_package:
                raise InvalidSchema(f"a second package at {where}")
            has_package = True
            file.package = cursor.dotted_name()
            cursor.expect(";")
        elif cursor.is_at("option"):
            file.options.append(_option(cursor))
        elif cursor.is_at("message"):
            file.types.append(_message(cursor))
        elif cursor.is_at("enum"):
            file.types.append(_enum(cursor))
        elif cursor.is_at("extend"):
            file.extends.append(_extend(cursor))
        elif cursor.is_at("service"):
            file.services.append(_service(cursor))
        elif not cursor.skip(";"):
            cursor.fail("a declaration, such as message or enum")
    return file


def _read_syntax(cursor: Cursor, file: File) -> None:
    keyword = cursor.next().text
    cursor.expect("=")
    where = cursor.where
    version = cursor.text()
    cursor.expect(";")
    if keyword == "syntax":
        if version not in ("proto2", "proto3"):
            raise InvalidSchema(f'the syntax at {where} is "{version[:40]}", neither proto2 nor proto3')
        file.syntax = version
    else:
        if version not in _EDITIONS:
            raise InvalidSchema(f'the edition "{version[:40]}" at {where} is not one of {_EDITIONS}')
        file.edition = version


def _option(cursor: Cursor) -> Option:
    cursor.expect("option")
    option = cursor.option()
    cursor.expect(";")
    return option


def _message(cursor: Cursor) -> Message:
    where = cursor.where
    cursor.expect("message")
    return Message(cursor.identifier(), _message_body(cursor), where)


def _message_body(cursor: Cursor) -> list[MessageMember]:
    cursor.enter()
    cursor.expect("{")
    members: list[MessageMember] = []
    while not cursor.skip("}"):
        if cursor.is_at("option"):
            members.append(_option(cursor))
        elif cursor.is_at("message"):
            members.append(_message(cursor))
        elif cursor.is_at("enum"):
            members.append(_enum(cursor))
        elif cursor.is_at("extend"):
            members.append(_extend(cursor))
        elif cursor.is_at("oneof"):
            members.append(_oneof(cursor))
        elif cursor.is_at("reserved"):
            members.append(_reserved(cursor, 1, LARGEST_FIELD_NUMBER))
        elif cursor.is_at("extensions"):
            members.append(_extensions(cursor))
        elif not cursor.skip(";"):
            members.append(_field(cursor, in_message=True))
    cursor.leave()
    return members


def _field(cursor: Cursor, *, in_message: bool) -> Field | Group:
    where = cursor.where
    label = cursor.next().text if cursor.is_at(*_LABELS) else None
    if cursor.is_at("group") and not cursor.is_before("."):
        cursor.next()
        name_where = cursor.where
        name = cursor.identifier()
        if not name[0].isupper():
            raise InvalidSchema(f"the name of a group begins with a capital letter, at {name_where}")
        cursor.expect("=")
        number = cursor.integer(1, LARGEST_FIELD_NUMBER)
        options = cursor.options_in_brackets()
        return Group(label, Message(name, _message_body(cursor), where), number, options, where)
    key = None
    if cursor.is_at("map") and cursor.is_before("<"):
        if label is not None or not in_message:
            raise InvalidSchema(f"a map has no label, and is no extension and in no oneof, at {where}")
        cursor.next()
        cursor.expect("<")
        key = cursor.dotted_name()
        cursor.expect(",")
        type_name = cursor.dotted_name()
        cursor.expect(">")
    else:
        type_name = cursor.dotted_name()
    name = cursor.identifier()
    cursor.expect("=")
    number = cursor.integer(1, LARGEST_FIELD_NUMBER)
    options = cursor.options_in_brackets()
    cursor.expect(";")
    return Field(label, type_name, name, number, options, key, where)


def _oneof(cursor: Cursor) -> Oneof:
    where = cursor.where
    cursor.expect("oneof")
    oneof = Oneof(cursor.identifier(), [], where)
    cursor.expect("{")
    while not cursor.skip("}"):
        if cursor.is_at(*_LABELS):
            raise InvalidSchema(f"a field in a oneof has no label, at {cursor.where}")
        if cursor.is_at("option"):
            oneof.members.append(_option(cursor))
        elif not cursor.skip(";"):
            oneof.members.append(_field(cursor, in_message=False))
    return oneof


def _range(cursor: Cursor, lowest: int, largest: int) -> tuple[int, int]:
    where = cursor.where
    first = cursor.integer(lowest, largest)
    last = first
    if cursor.skip("to"):
        last = largest if cursor.skip("max") else cursor.integer(lowest, largest)
    if last < first:
        raise InvalidSchema(f"a range that ends before it begins at {where}")
    return first, last


def _reserved(cursor: Cursor, lowest: int, largest: int) -> Reserved:
    reserved = Reserved([], cursor.where)
    cursor.expect("reserved")
    while True:
        if cursor.token.kind is Kind.STRING:
            reserved.values.append(cursor.text())
        elif cursor.token.kind is Kind.IDENTIFIER:
            reserved.values.append(cursor.identifier())
        else:
            reserved.values.append(_range(cursor, lowest, largest))
        if not cursor.skip(","):
            break
    cursor.expect(";")
    return reserved


def _extensions(cursor: Cursor) -> Extensions:
    where = cursor.where
    cursor.expect("extensions")
    ranges = [_range(cursor, 1, LARGEST_FIELD_NUMBER)]
    while cursor.skip(","):
        ranges.append(_range(cursor, 1, LARGEST_FIELD_NUMBER))
    options = cursor.options_in_brackets()
    cursor.expect(";")
    return Extensions(ranges, options, where)


def _extend(cursor: Cursor) -> Extend:
    where = cursor.where
    cursor.expect("extend")
    extend = Extend(cursor.dotted_name(), [], where)
    cursor.expect("{")
    while not cursor.skip("}"):
        if not cursor.skip(";"):
            extend.fields.append(_field(cursor, in_message=False))
    return extend


def _enum(cursor: Cursor) -> Enum:
    where = cursor.where
    cursor.expect("enum")
    enum = Enum(cursor.identifier(), [], where)
    cursor.expect("{")
    while not cursor.skip("}"):
        if cursor.is_at("option") and not cursor.is_before("="):
            enum.members.append(_option(cursor))
        elif cursor.is_at("reserved") and not cursor.is_before("="):
            enum.members.append(_reserved(cursor, -LARGEST_ENUM_NUMBER - 1, LARGEST_ENUM_NUMBER))
        elif not cursor.skip(";"):
            value_where = cursor.where
            name = cursor.identifier()
            cursor.expect("=")
            number = cursor.integer(-LARGEST_ENUM_NUMBER - 1, LARGEST_ENUM_NUMBER)
            enum.members.append(EnumValue(name, number, cursor.options_in_brackets(), value_where))
            cursor.expect(";")
    return enum


def _service(cursor: Cursor) -> Service:
    where = cursor.where
    cursor.expect("service")
    service = Service(cursor.identifier(), [], where)
    cursor.expect("{")
    while not cursor.skip("}"):
        if cursor.is_at("option"):
            service.members.append(_option(cursor))
        elif cursor.is_at("rpc"):
            service.members.append(_method(cursor))
        elif not cursor.skip(";"):
            cursor.fail("rpc or option")
    return service


def _method(cursor: Cursor) -> Method:
    where = cursor.where
    cursor.expect("rpc")
    name = cursor.identifier()
    request, request_streams = _method_type(cursor)
    cursor.expect("returns")
    response, response_streams = _method_type(cursor)
    method = Method(name, request, response, request_streams, response_streams, where=where)
    if cursor.skip("{"):
        while not cursor.skip("}"):
            if cursor.is_at("option"):
                method.options.append(_option(cursor))
            elif not cursor.skip(";"):
                cursor.fail("option")
    else:
        cursor.expect(";")
    return method


def _method_type(cursor: Cursor) -> tuple[str, bool]:
    cursor.expect("(")
    streams = cursor.is_at("stream") and not cursor.is_before(")")
    if streams:
        cursor.next()
    name = cursor.dotted_name()
    cursor.expect(")")
    return name, streams
