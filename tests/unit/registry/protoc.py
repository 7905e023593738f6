"""The descriptors that protoc makes, to compare ours with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

MAIN = "main.proto"
_DESCRIPTOR = "google/protobuf/descriptor.proto"


def compiled(folder: Path, text: str, references: Mapping[str, str] | None = None) -> Any:
    """The FileDescriptorProto of a text, or None if protoc refuses it. Its class knows the extensions that
    the text uses, so that options are compared by what they say and not by their bytes."""
    for name, content in {MAIN: text, **(references or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    result = folder / "descriptors"
    known = Path(protoc.__file__).parent / "_proto"
    arguments = [f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={result}", MAIN]
    if protoc.main(["", *arguments]) != 0:
        return None
    files = descriptor_pb2.FileDescriptorSet.FromString(result.read_bytes()).file
    pool = DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    for file in files:
        if file.name != _DESCRIPTOR:
            pool.Add(file)
    kind = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto"))
    return kind.FromString(files[-1].SerializeToString())


def own(descriptor: bytes, expected: Any) -> Any:
    """A descriptor of ours in the class, and under the name, of one that protoc made."""
    proto = type(expected).FromString(descriptor)
    proto.name = MAIN
    return proto
