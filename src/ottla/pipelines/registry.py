"""Schemas from a schema registry, over its HTTP API.

A registry is asked at most once per process for a schema: ids never change their meaning. What is asked with
`latest` is asked when a flow starts, on the driver.

A registry that cannot be reached, or is in trouble, is tried again for a while and then fails the task, since
the records are not to blame. One that answers "no such schema" is believed: that record is bad.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.errors import PipelineError

TIMEOUT_SECONDS: Final = 10.0
PAUSES_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each further attempt; after the last one the registry counts as unreachable."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryUnavailable(PipelineError):
    """The registry does not answer, or answers that it cannot."""


class UnknownSchema(PipelineError):
    """The registry has no such schema, subject or version."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that a schema is built on."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as the registry has it. `kind` is AVRO, JSON or PROTOBUF; `id` is 0 when it was not said."""

    id: int
    kind: str
    text: str
    references: tuple[Reference, ...] = ()


class Registry:
    """One registry. The address may carry a name and password: https://user:secret@registry:8081."""

    def __init__(
        self, url: str, *, timeout: float = TIMEOUT_SECONDS, pauses: tuple[float, ...] = PAUSES_SECONDS
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PipelineError(f"{url!r} is no address of a schema registry; give http://host:port")
        self._headers = {"Accept": _ACCEPT}
        if parts.username is not None:
            secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
        self.address = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", "")
        )
        self._timeout = timeout
        self._pauses = pauses

    def by_id(self, schema_id: int, *, serialized: bool = False) -> Schema:
        """The schema of an id. `serialized` asks for a Protobuf file as its compiled descriptor."""
        answer = self._get(f"/schemas/ids/{schema_id}{_format(serialized)}", f"schema id {schema_id}")
        return _schema({**answer, "id": schema_id})

    def version(self, subject: str, version: int | str, *, serialized: bool = False) -> Schema:
        """A version of a subject, or `latest`."""
        quoted = urllib.parse.quote(subject, safe="")
        path = f"/subjects/{quoted}/versions/{version}{_format(serialized)}"
        return _schema(self._get(path, f"subject {subject} version {version}"))

    def latest(self, subject: str, *, serialized: bool = False) -> Schema:
        return self.version(subject, "latest", serialized=serialized)

    def _get(self, path: str, what: str) -> dict[str, Any]:
        reason = ""
        for pause in (*self._pauses, None):
            try:
                request = urllib.request.Request(self.address + path, headers=self._headers)
                with urllib.request.urlopen(request, timeout=self._timeout) as response:
                    answer = json.loads(response.read(MAX_ANSWER_BYTES))
                if isinstance(answer, dict):
                    return answer
                reason = "it does not answer like a schema registry"
            except urllib.error.HTTPError as error:
                with error:
                    message = _message(error)
                if error.code == 404:
                    raise UnknownSchema(f"the registry at {self.address} has no {what}: {message}") from None
                if error.code < 500 and error.code != 429:
                    raise RegistryUnavailable(
                        f"the registry at {self.address} refuses {what}: {error.code} {message}"
                    ) from None
                reason = f"{error.code} {message}"
            except (OSError, ValueError) as error:
                reason = str(getattr(error, "reason", error))
            if pause is not None:
                time.sleep(pause)
        raise RegistryUnavailable(f"the registry at {self.address} gives no {what}: {reason}")


_registries: dict[str, Registry] = {}
_schemas: dict[tuple[str, int, bool], Schema | UnknownSchema] = {}
_lock = threading.Lock()


def cached_registry(url: str) -> Registry:
    """The registry of this process for an address."""
    with _lock:
        return _registries.setdefault(url, Registry(url))


def cached_schema(url: str, schema_id: int, *, serialized: bool = False) -> Schema:
    """The schema of an id, asked for once per process. One that does not exist is remembered too, so that a
    topic full of bad records is not a flood of requests."""
    key = (url, schema_id, serialized)
    known = _schemas.get(key)
    if known is None:
        try:
            known = cached_registry(url).by_id(schema_id, serialized=serialized)
        except UnknownSchema as error:
            known = error
        if len(_schemas) >= 10_000:
            _schemas.clear()
        _schemas[key] = known
    if isinstance(known, UnknownSchema):
        raise UnknownSchema(str(known))
    return known


def _format(serialized: bool) -> str:
    return "?format=serialized" if serialized else ""


def _schema(answer: dict[str, Any]) -> Schema:
    try:
        references = tuple(
            Reference(each["name"], each["subject"], int(each["version"]))
            for each in answer.get("references") or ()
        )
        # Avro is the kind that older registries do not mention.
        kind = answer.get("schemaType") or "AVRO"
        return Schema(int(answer.get("id") or 0), kind, answer["schema"], references)
    except (KeyError, TypeError, ValueError) as error:
        raise RegistryUnavailable(f"the registry answers without a schema: {error!r}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(MAX_ANSWER_BYTES))["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)
