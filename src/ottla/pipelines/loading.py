"""Loading a pipeline's Python file.

Executors are other processes: they can import Ottla, which is installed there, but not this file. So what it
defines travels with the functions that use it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ottla.pipelines.errors import PipelineError


def load(file: Path) -> ModuleType:
    """The file as a module. What is next to it can be imported by it."""
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A name of its own, so that `pipeline` in one project is not `pipeline` in another.
    name = f"ottla_pipeline_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PipelineError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise PipelineError(f"{error.filename} line {error.lineno}: {error.msg}") from None
    by_value(module)
    for other in list(sys.modules.values()):
        if _is_below(getattr(other, "__file__", None), file.parent):
            by_value(other)
    return module


def by_value(module: ModuleType) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_below(file: str | None, folder: Path) -> bool:
    if file is None or "site-packages" in file:
        return False
    return Path(file).resolve().is_relative_to(folder.resolve())
