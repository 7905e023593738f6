"""Compiles the gRPC door's `broker.proto` into the `broker.binpb` next to it: `make proto`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

PROTO = Path(__file__).parents[1] / "src/ottla/gateways/grpc/broker.proto"
COMPILED = PROTO.with_suffix(".binpb")


def compiled() -> bytes:
    """The descriptors of `broker.proto` as they should be in `broker.binpb`."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out.binpb"
        arguments = ["protoc", f"--proto_path={PROTO.parent}", f"--descriptor_set_out={out}", PROTO.name]
        if protoc.main(arguments) != 0:
            sys.exit(f"{PROTO} does not compile")
        return out.read_bytes()


if __name__ == "__main__":
    COMPILED.write_bytes(compiled())
