"""A schema registry for tests: a real HTTP server that answers as the registry's documentation says."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, dict[str, Any]]


class RegistryServer:
    """Schemas by id and by subject, a list of the requests that came, and answers to give instead."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.instead: list[Answer] = []
        self.serialize: Callable[[str], bytes] | None = None
        self.url = ""

    def register(
        self, subject: str, schema: str | dict[str, Any], kind: str = "AVRO", references: Any = None
    ) -> int:
        """Add a version to a subject; the schema's id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        identifier = len(self.schemas) + 1
        # Avro is the default, which a registry does not mention.
        said: dict[str, Any] = {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})
        self.schemas[identifier] = said | ({"references": references} if references else {})
        self.subjects.setdefault(subject, []).append(identifier)
        return identifier

    def answer(self, target: str) -> Answer:
        if self.instead:
            return self.instead.pop(0)
        parts = urlsplit(target)
        match [unquote(step) for step in parts.path.strip("/").split("/")]:
            case ["schemas", "ids", number] if int(number) in self.schemas:
                found = dict(self.schemas[int(number)])
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                ids = self.subjects[subject]
                number = len(ids) if version == "latest" else int(version)
                if not 1 <= number <= len(ids):
                    return 404, {"error_code": 40402, "message": f"Version {version} not found."}
                identifier = ids[number - 1]
                found = {"subject": subject, "version": number, "id": identifier, **self.schemas[identifier]}
            case ["subjects", subject, "versions", _]:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            case _:
                return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        wants = parse_qs(parts.query).get("format")
        if wants == ["serialized"] and found.get("schemaType") == "PROTOBUF" and self.serialize is not None:
            found["schema"] = base64.b64encode(self.serialize(found["schema"])).decode()
        return 200, found


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.requests.append((self.path, dict(self.headers.items())))
            status, answer = registry.answer(self.path)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()


def framed(identifier: int, payload: bytes, indexes: bytes = b"") -> bytes:
    """A payload in the wire format."""
    return b"\0" + identifier.to_bytes(4, "big") + indexes + payload


def compiled(text: str, name: str = "schema.proto") -> bytes:
    """A .proto text as the descriptor that a registry serves, without its imports."""
    import tempfile
    from pathlib import Path

    import grpc_tools
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_text(text)
        result = Path(folder) / "result"
        arguments = ["", f"-I{folder}", f"-I{known}", f"--descriptor_set_out={result}", name]
        assert protoc.main(arguments) == 0
        (file,) = FileDescriptorSet.FromString(result.read_bytes()).file
    return file.SerializeToString()
