"""A gRPC client that knows nothing of the service but what reflection tells it, as grpcurl does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SECONDS = 20.0


class Reflected:
    """`with Reflected(address) as broker: broker.call("Produce", topic="t", payload=b"v")`."""

    def __init__(self, address: str, service: str = "broker.Broker") -> None:
        self.channel = grpc.insecure_channel(address)
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self._service = descriptor_pool.DescriptorPool(self.database).FindServiceByName(service)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    def request(self, method: str, **fields: Any) -> Any:
        """A request message of a method."""
        kind = self._service.methods_by_name[method].input_type
        return message_factory.GetMessageClass(kind)(**fields)

    def call(self, method: str, **fields: Any) -> Any:
        return self._stub(method, "unary_unary")(self.request(method, **fields), timeout=SECONDS)

    def stream(self, method: str, **fields: Any) -> Any:
        return self._stub(method, "unary_stream")(self.request(method, **fields), timeout=SECONDS)

    def converse(self, method: str, requests: Iterable[Any]) -> Iterator[Any]:
        answers: Iterator[Any] = self._stub(method, "stream_stream")(iter(requests), timeout=SECONDS)
        return answers

    def _stub(self, method: str, kind: str) -> Any:
        described = self._service.methods_by_name[method]
        return getattr(self.channel, kind)(
            f"/{self._service.full_name}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(described.output_type).FromString,
        )
