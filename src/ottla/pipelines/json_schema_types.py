"""JSON Schemas as Spark types.

What a schema leaves open (any type, several types, an object that contains itself) becomes a text column with
the JSON of it: nothing is lost, and Spark's own functions read on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_type(schema: Mapping[str, Any], documents: Mapping[str, Any]) -> StructType:
    """The columns of a schema. `documents` are other schemas it refers to, by the names it uses for them."""
    from pyspark.sql.types import StructType

    found = _Types(schema, documents).of(schema, schema, ())
    if not isinstance(found, StructType):
        raise PipelineError("the JSON Schema describes no object with properties, so it has no columns")
    return found


class _Types:
    def __init__(self, root: Mapping[str, Any], documents: Mapping[str, Any]) -> None:
        self._documents = {"": root, **documents}

    def of(self, schema: Any, document: Mapping[str, Any], path: tuple[int, ...]) -> DataType:
        from pyspark.sql import types as T

        if not isinstance(schema, dict) or id(schema) in path:
            return T.StringType()
        path = (*path, id(schema))
        if "$ref" in schema:
            target, document = self._referred(schema["$ref"], document)
            return self.of(target, document, path)
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                present = [each for each in schema[choice] if each != {"type": "null"}]
                return self.of(present[0], document, path) if len(present) == 1 else T.StringType()
        match _kind(schema):
            case "boolean":
                return T.BooleanType()
            case "integer":
                return T.LongType()
            case "number":
                return T.DoubleType()
            case "array" if isinstance(schema.get("items"), dict):
                return T.ArrayType(self.of(schema["items"], document, path))
            case "object" if schema.get("properties"):
                return T.StructType(
                    [
                        T.StructField(name, self.of(each, document, path))
                        for name, each in schema["properties"].items()
                    ]
                )
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                values = self.of(schema["additionalProperties"], document, path)
                return T.MapType(T.StringType(), values)
            case _:
                return T.StringType()

    def _referred(self, reference: str, document: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        name, _, pointer = reference.partition("#")
        if name:
            if name not in self._documents:
                raise PipelineError(f"the JSON Schema refers to {name}, which is not among its references")
            document = self._documents[name]
        target: Any = document
        for step in filter(None, pointer.split("/")):
            try:
                target = target[step.replace("~1", "/").replace("~0", "~")]
            except (KeyError, TypeError):
                raise PipelineError(f"the JSON Schema refers to {reference}, which is not there") from None
        return target, document


def _kind(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        present = [each for each in kind if each != "null"]
        return present[0] if len(present) == 1 else None
    return kind
