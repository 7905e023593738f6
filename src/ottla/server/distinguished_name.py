"""The name in a certificate, written as Java writes it (RFC 2253): `CN=alice,OU=Kafka,O=Example`.

Access rules are made for these very letters, so escapes, the order and the attributes without a short name
follow `X500Principal.getName()`. Python's `getpeercert()` has lost by then what kind of string a value
was, so the certificate is read here, as far as its subject.
"""

from __future__ import annotations

from typing import Final

_SHORT: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# What kinds of string there are, by their tag, and in which letters.
_STRINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1E: "utf-16-be",
    0x1C: "utf-32-be",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_OID: Final = 0x06
_VERSION: Final = 0xA0


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate. Raises ValueError for what is none."""
    try:
        return _subject_of(certificate)
    except IndexError:
        raise ValueError("the certificate ends early") from None


def _subject_of(certificate: bytes) -> str:
    _, body, _ = _read(certificate, 0)
    _, fields, _ = _read(body, 0)
    position = 0
    tag, _, after = _read(fields, 0)
    if tag == _VERSION:
        position = after
    for _ in range(4):  # serial number, signature, issuer, validity
        _, _, position = _read(fields, position)
    _, names, _ = _read(fields, position)
    relative = []
    position = 0
    while position < len(names):
        _, attributes, position = _read(names, position)
        relative.append(_relative_name(attributes))
    return ",".join(reversed(relative))


def _relative_name(attributes: bytes) -> str:
    """One step of the name, which may consist of several attributes."""
    parts = []
    position = 0
    while position < len(attributes):
        _, attribute, position = _read(attributes, position)
        tag, kind, start = _read(attribute, 0)
        if tag != _OID:
            raise ValueError("an attribute of a name has no kind")
        parts.append(_attribute(_oid(kind), attribute[start:]))
    return "+".join(parts)


def _attribute(oid: str, encoded: bytes) -> str:
    tag, value, end = _read(encoded, 0)
    short = _SHORT.get(oid)
    letters = _STRINGS.get(tag)
    if short is None or letters is None:
        return f"{short or oid}=#{encoded[:end].hex()}"
    return f"{short}={_quoted(value.decode(letters))}"


def _quoted(text: str) -> str:
    written = ["\\00" if c == "\0" else f"\\{c}" if c in _ESCAPED else c for c in text]
    blank = len(text) - len(text.lstrip(" \r"))
    last = len(text.rstrip(" \r"))
    return "".join(
        f"\\{part}" if position < blank or position >= last else part for position, part in enumerate(written)
    )


def _oid(value: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in value:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _read(data: bytes, position: int) -> tuple[int, bytes, int]:
    """The element at a position: its tag, its value, and where the next one is."""
    tag, length = data[position], data[position + 1]
    position += 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[position : position + count], "big")
        position += count
    end = position + length
    if end > len(data):
        raise ValueError("the certificate ends early")
    return tag, data[position:end], end
