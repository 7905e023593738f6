"""Which reader is chosen, depending on what could be installed, and that it is said in the log."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.protocol.batch import Record, write_batch

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s", stream=sys.stdout)
for name in {missing!r}:
    sys.modules[name] = None
from ottla.arrow.decode import Decoder, decoder_name
print(decoder_name())
print(Decoder("t", 0, columns=["offset", "value"]).decode(bytes.fromhex({data!r}), start=0).to_pylist())
"""
OURS = "ottla.protocol._columns"
THEIRS = "aiokafka.record._crecords"


@pytest.mark.parametrize(
    ("missing", "name", "line"),
    [
        ((), "compiled", "ottla.arrow INFO records become columns by the compiled kernel"),
        ((OURS,), "aiokafka", "ottla.arrow WARNING records become columns by aiokafka's reader, "),
        ((OURS, THEIRS), "python", "ottla.arrow WARNING records become columns by Python, "),
        ((OURS, "aiokafka"), "python", "ottla.arrow WARNING records become columns by Python, "),
    ],
)
def test_the_fastest_reader_that_is_there_is_chosen(missing: tuple[str, ...], name: str, line: str) -> None:
    if not missing:
        pytest.importorskip(OURS, reason="the kernel is not compiled")
    data = write_batch([Record(value=b"a"), Record(value=None)]).hex()
    program = PROGRAM.format(missing=missing, data=data)
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    said, chosen, rows = output.splitlines()
    assert said.startswith(line)
    assert chosen == name
    assert rows == "[{'offset': 0, 'value': b'a'}, {'offset': 1, 'value': None}]"
