"""The declarations as a whole: nothing is missing, and everything is where its name says."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import ottla.protocol.messages
from ottla.protocol.apis import Api, all_apis, api, api_named
from tests.unit.protocol.message_values import stored_messages

APIS = all_apis()


def test_every_key_from_0_to_92_is_declared() -> None:
    assert [found.key for found in APIS] == list(range(93))


@pytest.mark.parametrize("found", APIS, ids=lambda found: found.name)
def test_an_api_is_in_the_file_of_its_name(found: Api) -> None:
    for message, suffix in ((found.request, "Request"), (found.response, "Response")):
        assert message.__name__ == found.name + suffix
        assert message.__module__ == f"ottla.protocol.messages.{found.module}"
        assert message.api_key == found.key
    text = sys.modules[found.request.__module__].__doc__
    assert text is not None and text.startswith(f"{found.name} (key {found.key}): ")


@pytest.mark.parametrize("found", APIS, ids=lambda found: found.name)
def test_a_response_has_the_versions_of_its_request(found: Api) -> None:
    assert found.request.versions == found.response.versions
    assert found.request.flexible == found.response.flexible


def test_every_file_of_messages_belongs_to_an_api() -> None:
    files = {info.name for info in pkgutil.iter_modules(ottla.protocol.messages.__path__)}
    assert files == {found.module for found in APIS}


def test_old_versions_that_kafka_4_dropped_are_declared() -> None:
    first = {
        name: api_named(name).request.versions for name in ("Produce", "Fetch", "ListOffsets", "OffsetCommit")
    }
    assert first == {"Produce": (0, 13), "Fetch": (0, 18), "ListOffsets": (0, 11), "OffsetCommit": (0, 10)}


def test_an_api_is_found_by_kafkas_name_and_by_its_file() -> None:
    assert api_named("AddOffsetsToTxn") is api_named("add_offsets_to_txn") is api(25)
    for unknown in ("Nothing", ""):
        with pytest.raises(KeyError):
            api_named(unknown)
    for key in (-1, 93):
        with pytest.raises(KeyError):
            api(key)


def test_the_table_does_not_import_what_it_lists() -> None:
    code = (
        "import sys, ottla.protocol.apis\n"
        "loaded = [m for m in sys.modules if m.startswith('ottla.protocol.messages.')]\n"
        "assert not loaded, loaded\n"
        "ottla.protocol.apis.api(12).request\n"
        "loaded = [m for m in sys.modules if m.startswith('ottla.protocol.messages.')]\n"
        "assert loaded == ['ottla.protocol.messages.heartbeat'], loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_stored_records_of_one_kind_have_types_of_their_own() -> None:
    for module in ("metadata", "groups", "transactions", "share"):
        messages = [m for m in stored_messages() if m.__module__.endswith(f".{module}") and m.api_key >= 0]
        for suffix in ("Key", "Value", "Record"):
            types = [m.api_key for m in messages if m.__name__.endswith(suffix)]
            assert len(types) == len(set(types)), (module, suffix)
