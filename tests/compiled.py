"""The compiled kernel, for tests that hold it against the one in Python."""

from __future__ import annotations

import shutil
from importlib import import_module
from types import ModuleType

import pytest


def kernel(name: str = "_kernel") -> ModuleType:
    """Fails where it should be there and is not. Where nothing can be compiled there is nothing to test."""
    try:
        return import_module(f"ottla.protocol.{name}")
    except ImportError as error:
        if any(map(shutil.which, ("cc", "gcc", "clang", "cl"))):
            pytest.fail(f"there is a C compiler, but no compiled kernel ({error}): see pip install -e .")
        pytest.skip("no C compiler here, so there is no compiled kernel")
