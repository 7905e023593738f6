"""The text of a schema that is kept: as Java's `Schema.toString` writes it, and as normalizing leaves it."""

from __future__ import annotations

import pytest

from ottla.registry.formats.avro.schema import parse

CANONICAL = {
    "a primitive": ('"string"', '"string"'),
    "a primitive as an object": (' { "type" : "string" } ', '"string"'),
    "what is reserved goes": ('{"type":"string","doc":"x","name":"y","size":3}', '"string"'),
    "what is not stays": (
        '{"avro.java.string":"String","type":"string","logicalType":"none"}',
        '{"type":"string","avro.java.string":"String","logicalType":"none"}',
    ),
    "an array": (
        '{"items":{"type":"int"},"default":[],"type":"array"}',
        '{"type":"array","items":"int","default":[]}',
    ),
    "a map": (
        '{"x":1,"values":["null","long"],"type":"map"}',
        '{"type":"map","values":["null","long"],"x":1}',
    ),
    "a union": ('[ "null" , {"type":"int","x":null} ]', '["null",{"type":"int","x":null}]'),
    "an empty union": ("[]", "[]"),
    "a record": (
        '{"fields":[{"aliases":["g"],"order":"IGNORE","x":{"b":1,"a":2},"default":1,"doc":"of f",'
        '"type":"int","name":"f"},{"order":"ascending","type":"int","name":"g","aliases":[]}],'
        '"x":[1],"aliases":["S","o.T","n.U"],"doc":"of R","namespace":"n","name":"R","type":"record"}',
        '{"type":"record","name":"R","namespace":"n","doc":"of R","fields":['
        '{"name":"f","type":"int","doc":"of f","default":1,"order":"ignore","aliases":["g"],'
        '"x":{"b":1,"a":2}},'
        '{"name":"g","type":"int"}],"x":[1],"aliases":["S","o.T","U"]}',
    ),
    "an error": (
        '{"name":"R","type":"error","fields":[]}',
        '{"type":"error","name":"R","fields":[]}',
    ),
    "an enum": (
        '{"default":"A","x":1,"aliases":["F"],"symbols":["B","A"],"doc":"d","name":"n.E","type":"enum"}',
        '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["B","A"],"default":"A","x":1,"aliases":["F"]}',
    ),
    "an enum whose default is no text": (
        '{"type":"enum","name":"E","symbols":["A"],"default":null}',
        '{"type":"enum","name":"E","symbols":["A"]}',
    ),
    "a fixed": (
        '{"aliases":["G"],"default":"x","size":4,"doc":"d","name":"F","namespace":"n","type":"fixed"}',
        '{"type":"fixed","name":"F","namespace":"n","doc":"d","size":4,"default":"x","aliases":["G"]}',
    ),
    "documentation that is no text": (
        '{"type":"record","name":"R","doc":1,"fields":[{"name":"f","type":"int","doc":{}}]}',
        '{"type":"record","name":"R","fields":[{"name":"f","type":"int"}]}',
    ),
    "a namespace that is no text": (
        '{"type":"fixed","name":"F","namespace":1,"size":0}',
        '{"type":"fixed","name":"F","size":0}',
    ),
    "a name brings its namespace": (
        '{"type":"fixed","name":"a.b.F","namespace":"c","size":1}',
        '{"type":"fixed","name":"F","namespace":"a.b","size":1}',
    ),
    "the namespace around it is left out": (
        '{"type":"record","name":"R","namespace":"n","fields":['
        '{"name":"a","type":{"type":"fixed","name":"n.F","size":1}},'
        '{"name":"b","type":{"type":"fixed","name":"G","namespace":"m","size":1}},'
        '{"name":"c","type":{"type":"fixed","name":"H","namespace":"","size":1}},'
        '{"name":"d","type":["n.F","m.G","H","R"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":['
        '{"name":"a","type":{"type":"fixed","name":"F","size":1}},'
        '{"name":"b","type":{"type":"fixed","name":"G","namespace":"m","size":1}},'
        '{"name":"c","type":{"type":"fixed","name":"H","namespace":"","size":1}},'
        '{"name":"d","type":["F","m.G","H","R"]}]}',
    ),
    "a name like a kind's is said in full": (
        '{"type":"record","name":"n.map","fields":[{"name":"a","type":["null","n.map"]}],"aliases":["array","q"]}',
        '{"type":"record","name":"map","namespace":"n","fields":[{"name":"a","type":["null","n.map"]}],'
        '"aliases":["n.array","q"]}',
    ),
    "an alias without a namespace": (
        '{"type":"fixed","name":"n.F","size":1,"aliases":[".G"]}',
        '{"type":"fixed","name":"F","namespace":"n","size":1,"aliases":["G"]}',
    ),
    "a key twice": ('{"type":"int","x":1,"y":2,"x":3}', '{"type":"int","x":3,"y":2}'),
    "numbers": (
        '{"type":"int","x":[1e3,1.10,-0,-0.0,1e7,12345678.9,0.001,0.00012,1E-7,100.0,123456789012345678901,1e400]}',
        '{"type":"int","x":[1000.0,1.1,0,-0.0,1.0E7,1.23456789E7,0.001,1.2E-4,1.0E-7,100.0,'
        '123456789012345678901,"Infinity"]}',
    ),
    "texts": (
        '{"type":"int","x":"\\u0041\\/\\"\\\\\\n\\u001f\\u007f\\u00e9\\ud83d\\ude00"}',
        '{"type":"int","x":"A/\\"\\\\\\n\\u001F\x7f\u00e9\U0001f600"}',
    ),
    "a default as text": (
        '{"type":"record","name":"R","fields":[{"name":"f","type":"float","default":"1.50"},'
        '{"name":"g","type":"double","default":"NaN"},{"name":"h","type":"double","default":1}]}',
        '{"type":"record","name":"R","fields":[{"name":"f","type":"float","default":1.5},'
        '{"name":"g","type":"double","default":"NaN"},{"name":"h","type":"double","default":1}]}',
    ),
}


def record(*fields: str, more: str = "") -> str:
    return f'{{"type":"record","name":"R","fields":[{",".join(fields)}]{more}}}'


NORMALIZED = {
    "nothing to do": ('["null","string"]', '["null","string"]'),
    "attributes are sorted": (
        '{"type":"string","z":1,"a":{"d":1,"c":[{"f":1,"e":2}]},"logicalType":"none"}',
        '{"type":"string","a":{"c":[{"e":2,"f":1}],"d":1},"logicalType":"none","z":1}',
    ),
    "a logical type stands first": (
        '{"type":"long","a":1,"logicalType":"timestamp-millis"}',
        '{"type":"long","logicalType":"timestamp-millis","a":1}',
    ),
    "unless it means nothing there": (
        '{"type":"int","a":1,"logicalType":"timestamp-millis","z":1}',
        '{"type":"int","a":1,"logicalType":"timestamp-millis","z":1}',
    ),
    "with precision and scale": (
        '{"type":"bytes","a":1,"scale":2,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}',
    ),
    "but not with a scale of nothing": (
        '{"type":"bytes","a":1,"scale":0,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0}',
    ),
    "a decimal that is too precise is none": (
        '{"type":"fixed","name":"F","size":2,"precision":5,"logicalType":"decimal","a":1}',
        '{"type":"fixed","name":"F","size":2,"a":1,"logicalType":"decimal","precision":5}',
    ),
    "a uuid": (
        '{"type":"fixed","name":"F","size":16,"a":1,"logicalType":"uuid"}',
        '{"type":"fixed","name":"F","size":16,"logicalType":"uuid","a":1}',
    ),
    "a duration": (
        '{"type":"fixed","name":"F","size":12,"a":1,"logicalType":"duration"}',
        '{"type":"fixed","name":"F","size":12,"logicalType":"duration","a":1}',
    ),
    "a map of any keys": (
        '{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"key","type":"int"},'
        '{"name":"value","type":"int"}]},"a":1,"logicalType":"map"}',
        '{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"key","type":"int"},'
        '{"name":"value","type":"int"}]},"logicalType":"map","a":1}',
    ),
    "a variant": (
        record(
            '{"name":"value","type":"bytes"}',
            '{"name":"metadata","type":"bytes"}',
            more=',"a":1,"logicalType":"variant"',
        ),
        record(
            '{"name":"value","type":"bytes"}',
            '{"name":"metadata","type":"bytes"}',
            more=',"logicalType":"variant","a":1',
        ),
    ),
    "aliases are sorted": (
        '{"type":"enum","name":"n.E","symbols":["B","A"],"aliases":["z","b.y","a.x"]}',
        '{"type":"enum","name":"E","namespace":"n","symbols":["B","A"],"aliases":["a.x","b.y","z"]}',
    ),
    "a field's too": (
        record('{"name":"f","type":"int","aliases":["h","g"],"z":1,"y":2,"order":"descending","doc":""}'),
        record('{"name":"f","type":"int","doc":"","order":"descending","aliases":["g","h"],"y":2,"z":1}'),
    ),
    "empty documentation goes": (
        '{"type":"fixed","name":"F","doc":"","size":1}',
        '{"type":"fixed","name":"F","size":1}',
    ),
    "an error becomes a record": (
        '{"type":"error","name":"R","fields":[]}',
        '{"type":"record","name":"R","fields":[]}',
    ),
    "a type without a namespace gets one": (
        '{"type":"record","name":"n.R","fields":[{"name":"f","type":{"type":"fixed","name":"F","namespace":"","size":1}}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":1}}]}',
    ),
    "a default of a double": (
        record('{"name":"f","type":"double","default":1}'),
        record('{"name":"f","type":"double","default":1.0}'),
    ),
    "a default of a float": (
        record(
            '{"name":"f","type":"float","default":0.123456789}', '{"name":"g","type":"float","default":0.1}'
        ),
        record(
            '{"name":"f","type":"float","default":0.12345679}', '{"name":"g","type":"float","default":0.1}'
        ),
    ),
    "a default of bytes": (
        record('{"name":"f","type":"bytes","default":"\u00e9\u20ac"}'),
        record('{"name":"f","type":"bytes","default":"\u00e9?"}'),
    ),
    "a default of a union's first": (
        record('{"name":"f","type":["null","string"],"default":null}'),
        record('{"name":"f","type":["null","string"],"default":null}'),
    ),
    "a default of a union's second goes": (
        record('{"name":"f","type":["null","string"],"default":"x"}'),
        record('{"name":"f","type":["null","string"]}'),
    ),
    "a default with members": (
        record(
            '{"name":"f","type":{"type":"map","values":"double"},"default":{"b":1,"a":2}}',
            '{"name":"g","type":{"type":"array","items":"float"},"default":[1]}',
            '{"name":"h","type":{"type":"record","name":"S","fields":[{"name":"z","type":"long"},'
            '{"name":"y","type":"double"}]},"default":{"z":1,"y":1}}',
        ),
        record(
            '{"name":"f","type":{"type":"map","values":"double"},"default":{"a":2.0,"b":1.0}}',
            '{"name":"g","type":{"type":"array","items":"float"},"default":[1.0]}',
            '{"name":"h","type":{"type":"record","name":"S","fields":[{"name":"z","type":"long"},'
            '{"name":"y","type":"double"}]},"default":{"y":1.0,"z":1}}',
        ),
    ),
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.values(), ids=CANONICAL)
def test_a_schema_is_kept_as_java_writes_it(text: str, canonical: str) -> None:
    schema = parse(text, {})
    assert schema.canonical == canonical
    assert parse(canonical, {}).canonical == canonical


@pytest.mark.parametrize(("text", "normalized"), NORMALIZED.values(), ids=NORMALIZED)
def test_a_normalized_schema_is_kept_as_confluents_registry_writes_it(text: str, normalized: str) -> None:
    assert parse(text, {}).normalized == normalized
    assert parse(normalized, {}).normalized == normalized
