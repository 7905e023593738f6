"""Reading topics: columns instead of bytes, and bad records kept apart from good ones.

    read.topic("orders", decode=read.json("id long, customer string, at timestamp"))
    read.topic("orders", decode=read.avro(), key=read.string(), keep=["offset", "timestamp"])

A record that does not decode fails the flow, naming its topic, partition and offset, unless the flow has a
dead-letter topic, which then gets it, or `bad_records="skip"` leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ottla.pipelines import context
from ottla.pipelines.decode import Decoder, Part, Subject
from ottla.pipelines.decode_avro import AvroDecoder
from ottla.pipelines.decode_json_schema import JsonSchemaDecoder
from ottla.pipelines.decode_protobuf import ProtobufDecoder
from ottla.pipelines.decode_text import CsvDecoder, JsonDecoder, StringDecoder
from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "ottla"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_KEY, _VALUE, _ERROR = "_ottla_key", "_ottla_value", "_ottla_error"


def string() -> Decoder:
    """UTF-8 text, as one column."""
    return StringDecoder()


def json(schema: str | StructType, **options: str) -> Decoder:
    """JSON objects; the schema as text ("id long, at timestamp") or Spark's type. Options are
    `from_json`'s."""
    return JsonDecoder(schema, options)


def csv(schema: str | StructType, **options: str) -> Decoder:
    """Lines of CSV. Options are `from_csv`'s, such as sep=";"."""
    return CsvDecoder(schema, options)


def avro(registry: str | None = None, *, subject: str | None = None) -> Decoder:
    """Avro in the Confluent wire format. The subject is TOPIC-value (or TOPIC-key) unless named."""
    return AvroDecoder(registry, subject)


def json_schema(
    registry: str | None = None,
    *,
    subject: str | None = None,
    schema: str | StructType | None = None,
    validate: bool = True,
) -> Decoder:
    """JSON in the Confluent wire format, checked against its JSON Schema. A `schema` of one's own decides on
    the columns' types instead of the subject's."""
    return JsonSchemaDecoder(registry, subject, schema, validate)


def protobuf(
    registry: str | None = None, *, subject: str | None = None, message: str | None = None
) -> Decoder:
    """Protobuf in the Confluent wire format; the schema's first message unless another is named."""
    return ProtobufDecoder(registry, subject, message)


def topic(
    name: str | Sequence[str],
    *,
    decode: Decoder | None = None,
    key: Decoder | None = None,
    keep: Sequence[str] | Mapping[str, str] = (),
    tombstones: bool = False,
    bad_records: Literal["fail", "skip"] = "fail",
    start: str = "earliest",
    max_offsets: int | None = None,
    options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """A stream of a topic's records, or of several topics'.

    decode: how values become columns; without it and `key` the records come as they are, with Kafka's
    columns.
    key: how keys become the column `key`.
    keep: columns of the record to have next to the decoded ones, such as "timestamp"; a mapping renames them.
    tombstones: whether records without a value come too, with nulls in all columns of the value.
    start: where a flow without checkpoint starts: earliest, latest or offsets as JSON.
    max_offsets: how many records a batch has at most.
    options: further options of the data source.
    """
    flow = context.current()
    names = [name] if isinstance(name, str) else list(name)
    if not names:
        raise PipelineError("read.topic wants the name of a topic")
    flow.topics.extend(names)
    given = {"startingOffsets": start, **(options or {})}
    limit = max_offsets or flow.max_offsets
    if limit is not None:
        given.setdefault("maxOffsetsPerTrigger", str(limit))
    source = Source(spark or flow.spark, flow.surroundings, names, decode, key, given)
    if decode is None and key is None:
        if keep or tombstones:
            raise PipelineError("keep= and tombstones= go with decode=; without it all columns are there")
        return source.records()
    flow.sources.append(source)
    rows = source.decoded(headers="headers" in keep)
    error = rows[_ERROR]
    if flow.has_dead_letter or bad_records == "skip":
        rows = rows.filter(error.isNull())
    else:
        rows = rows.filter(_raising(rows))
    if decode is not None and not tombstones:
        rows = rows.filter(rows["value"].isNotNull())
    return rows.select(*source.columns(rows, keep))


@dataclass
class Source:
    """A topic that a flow reads with a decoder. The flow's dead-letter query reads it a second time."""

    spark: SparkSession
    surroundings: context.Surroundings
    topics: Sequence[str]
    decode: Decoder | None
    key: Decoder | None
    options: Mapping[str, str]
    _has_fields: dict[Part, bool] = field(default_factory=dict)

    def records(self, *, headers: bool = False) -> DataFrame:
        """The records as they are."""
        reader = self.spark.readStream.format(FORMAT).options(**self.surroundings.connector_options())
        reader = reader.option("subscribe", ",".join(self.topics)).options(**self.options)
        return reader.option("includeHeaders", "true").load() if headers else reader.load()

    def decoded(self, *, headers: bool = False) -> DataFrame:
        """The records with what was decoded next to them, and what went wrong."""
        from pyspark.sql import functions as F

        rows = self.records(headers=headers)
        errors: list[Column] = []
        parts: list[tuple[Part, Decoder | None, str]] = [
            ("key", self.key, _KEY),
            ("value", self.decode, _VALUE),
        ]
        for part, decoder, column in parts:
            if decoder is not None:
                subject = Subject(self.topics[0], part, self.surroundings.registry)
                decoded = decoder.decoded(F.col(part), subject)
                self._has_fields[part] = decoded.is_struct
                rows = decoded.add_to(rows, column)
                error = F.col(f"{column}.error")
                errors.append(F.when(error.isNotNull(), F.concat(F.lit(f"the {part} "), error)))
        return rows.withColumn(_ERROR, F.coalesce(*errors))

    def columns(self, rows: DataFrame, keep: Sequence[str] | Mapping[str, str]) -> list[Column]:
        """What a flow sees of them."""
        from pyspark.sql import functions as F

        kept = dict(keep) if isinstance(keep, Mapping) else {each: each for each in keep}
        for name in kept:
            if name not in _RECORD_COLUMNS:
                raise PipelineError(f"keep={name!r} is no column of a record: {', '.join(_RECORD_COLUMNS)}")
        if self.key is not None and "key" in kept.values():
            raise PipelineError("key= gives a column `key` already; keep the bytes by another name")
        chosen = [F.col(f"{_KEY}.value").alias("key")] if self.key is not None else []
        if self.decode is not None:
            chosen.append(
                F.col(f"{_VALUE}.value.*")
                if self._has_fields["value"]
                else F.col(f"{_VALUE}.value").alias("value")
            )
        return [*chosen, *(F.col(name).alias(alias) for name, alias in kept.items())]


def bad_records(source: Source) -> DataFrame:
    """The records of a source that do not decode, whole, with the column `error`."""
    rows = source.decoded(headers=True)
    return rows.filter(rows[_ERROR].isNotNull()).select(
        "key", "value", "headers", "topic", "partition", "offset", "timestamp", rows[_ERROR].alias("error")
    )


def _raising(rows: DataFrame) -> Column:
    from pyspark.sql import functions as F

    said = F.concat(
        rows["topic"],
        F.lit("-"),
        rows["partition"].cast("string"),
        F.lit(" at offset "),
        rows["offset"].cast("string"),
        F.lit(": "),
        rows[_ERROR],
    )
    return F.when(rows[_ERROR].isNotNull(), F.raise_error(said).cast("boolean")).otherwise(F.lit(True))
