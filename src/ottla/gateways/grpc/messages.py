"""The messages of `broker.proto`, as classes.

`broker.binpb` is the compiled form of `broker.proto`, made by `make proto`; a test keeps the two in step. The
classes come from it when they are first used, so there is no generated Python to go stale, and no dependence
on the version of protobuf that generated it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FILE: Final = "broker.proto"
PACKAGE: Final = "broker"
SERVICE: Final = "broker.Broker"

_pool: Final = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(
    files(__package__).joinpath("broker.binpb").read_bytes()
).file:
    _pool.Add(_file)


def pool() -> Any:
    """Where the reflection service looks names up."""
    return _pool


def service() -> Any:
    return _pool.FindServiceByName(SERVICE)


def message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


CommitOffsetsResponse: Final = message("CommitOffsetsResponse")
CommittedOffsetsResponse: Final = message("CommittedOffsetsResponse")
ConsumeResponse: Final = message("ConsumeResponse")
CreateTopicResponse: Final = message("CreateTopicResponse")
Header: Final = message("Header")
ListTopicsResponse: Final = message("ListTopicsResponse")
Message: Final = message("Message")
ProduceResponse: Final = message("ProduceResponse")
Topic: Final = message("Topic")
