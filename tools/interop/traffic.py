"""The requests that one client sent and their answers, read by kio, so that no codec of ours has a say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from tools.interop.wire import Exchange


class Said:
    """One exchange with its API's name, as `request` and `response` of kio."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.api = api_key_map.get(exchange.api_key, f"api {exchange.api_key}")
        self.version = exchange.version

    @cached_property
    def request(self) -> Any:
        schema = load_request_schema(self.exchange.api_key, self.version)
        return body(schema, self.exchange.request)

    @cached_property
    def response(self) -> Any:
        schema = load_response_schema(self.exchange.api_key, self.version)
        return body(schema, self.exchange.response)


def body(schema: Any, frame: bytes) -> Any:
    _, size = entity_reader(schema.__header_schema__)(frame, 0)
    message, _ = entity_reader(schema)(frame, size)
    return message


class Traffic:
    def __init__(self, exchanges: Iterable[Exchange] = ()) -> None:
        self.said = [Said(exchange) for exchange in exchanges]

    def of(self, *apis: str) -> Iterator[Said]:
        """Exchanges of these APIs that were answered, in the order of their requests."""
        return (said for said in self.said if said.api in apis and said.exchange.response)

    def apis(self) -> set[str]:
        return {said.api for said in self.said if said.exchange.response}

    def heard(self, word: str, *apis: str) -> bool:
        """Whether an answer of one of these APIs has the word in it."""
        return any(word.encode() in said.exchange.response for said in self.of(*apis))
