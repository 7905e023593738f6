"""The messages that describe a file, in a pool of their own.

In the library's own pool their options would know whatever extensions somebody in this process has imported
(Confluent's client brings some), and what a schema is kept as would depend on that.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_POOL = DescriptorPool()
_POOL.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)


def _class(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"google.protobuf.{name}"))


EDITION_2023: int = descriptor_pb2.EDITION_2023
FieldDescriptorProto: Any = _class("FieldDescriptorProto")
FileDescriptorProto: Any = _class("FileDescriptorProto")
