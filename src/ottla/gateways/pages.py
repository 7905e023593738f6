"""What the HTTP door sends."""

from __future__ import annotations

import json
from typing import Any


class Page:
    """An answer: text, bytes, or with `Page.of_json` a value."""

    __slots__ = ("body", "content_type", "has_body", "headers", "status")

    def __init__(
        self,
        body: str | bytes,
        content_type: str = "text/plain; charset=utf-8",
        *,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.body = body.encode() if isinstance(body, str) else body
        self.content_type = content_type
        self.status = status
        self.headers = headers
        self.has_body = True  # an answer to HEAD has only the headers of one

    @classmethod
    def of_json(cls, value: Any, *, status: int = 200) -> Page:
        return cls(json.dumps(value, indent=2) + "\n", "application/json", status=status)
