"""Protobuf schemas of a registry as descriptors that the protobuf library understands.

That library reads compiled descriptors, not .proto text. Registries compile them when asked
(`format=serialized`); for one that answers with text all the same, the compiler in grpcio-tools is used if it
is installed.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry import Schema, cached_registry

MAIN = "main.proto"
_WELL_KNOWN = "google/protobuf/"


def file_descriptor(url: str, schema: Schema) -> Any:
    """The FileDescriptor of a schema that was asked for as serialized, in a pool of its own."""
    from google.protobuf.descriptor_pool import DescriptorPool

    files: dict[str, Any] = {}
    _collect(url, MAIN, schema, files)
    pool = DescriptorPool()
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = files.get(name) or _well_known(name)
        for dependency in file.dependency:
            add(dependency)
        try:
            pool.Add(file)
        except TypeError as error:
            raise PipelineError(f"the registry's Protobuf schema cannot be read: {error}") from None

    add(MAIN)
    return pool.FindFileByName(MAIN)


def message_at(file: Any, indexes: tuple[int, ...]) -> Any:
    """The message that the wire format's indexes name, or None."""
    messages, found = list(file.message_types_by_name.values()), None
    for index in indexes:
        if index >= len(messages):
            return None
        found = messages[index]
        messages = list(found.nested_types)
    return found


def _collect(url: str, name: str, schema: Schema, files: dict[str, Any]) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    texts: dict[str, str] = {}
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, DecodeError) as error:
        if "message" not in schema.text and "syntax" not in schema.text:
            raise PipelineError(f"the registry's Protobuf schema cannot be read: {error}") from None
        _texts(url, name, schema, texts)
        for compiled in _compile(name, texts):
            files.setdefault(compiled.name, compiled)
        return
    file.name = name
    files[name] = file
    for reference in schema.references:
        if reference.name not in files and not reference.name.startswith(_WELL_KNOWN):
            other = cached_registry(url).version(reference.subject, reference.version, serialized=True)
            _collect(url, reference.name, other, files)


def _texts(url: str, name: str, schema: Schema, texts: dict[str, str]) -> None:
    texts[name] = schema.text
    for reference in schema.references:
        if reference.name not in texts:
            other = cached_registry(url).version(reference.subject, reference.version)
            _texts(url, reference.name, other, texts)


def _compile(name: str, texts: dict[str, str]) -> list[Any]:
    try:
        protoc = import_module("grpc_tools.protoc")
    except ImportError:
        raise PipelineError(
            "the registry gives Protobuf schemas as text only; to compile them run: pip install grpcio-tools"
        ) from None
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory(prefix="ottla-proto-") as folder:
        root = Path(folder)
        for path, text in texts.items():
            file = (root / path).resolve()
            if not file.is_relative_to(root.resolve()):
                raise PipelineError(
                    f"the registry's Protobuf schema refers to {path}, which is no name of a file"
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        known = Path(str(protoc.__file__)).parent / "_proto"
        result = root / "descriptors"
        status = protoc.main(
            ["", f"-I{root}", f"-I{known}", "--include_imports", f"--descriptor_set_out={result}", name]
        )
        if status != 0:
            raise PipelineError("the registry's Protobuf schema does not compile; protoc said why above")
        return list(FileDescriptorSet.FromString(result.read_bytes()).file)


def _well_known(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    if name.startswith(_WELL_KNOWN):
        try:
            module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ImportError:
            pass
        else:
            file = FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            return file
    raise PipelineError(f"the Protobuf schema imports {name}, which is not among its references")
