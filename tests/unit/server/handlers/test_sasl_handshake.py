from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import IllegalSaslState
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.server.handlers.sasl_handshake import sasl_handshake


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_without_sasl_is_refused(node: Any, version: int) -> None:
    response = node.call(sasl_handshake, SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (response.error_code, response.mechanisms) == (IllegalSaslState.code, [])
