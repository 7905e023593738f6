"""What a run depends on, written beside its figures."""

from __future__ import annotations

import mmap
import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

import psutil

_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


def touch_memory(megabytes: int) -> None:
    """Use this much of the free memory once.

    The host of a virtual machine takes back what lies idle, and whoever uses it next waits for it: a broker
    that fills the page cache then spends three times as long, in one round and not in the next.
    """
    size = min(megabytes * 1_000_000, psutil.virtual_memory().available // 2)
    if _POPULATE and size > 0:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _POPULATE).close()


def description() -> dict[str, str]:
    found = {
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
    }
    for package in ("ottla", "confluent-kafka"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    if java := java_version():
        found["Java"] = java
    return found


def java_version() -> str | None:
    if (program := shutil.which("java")) is None:
        return None
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else None
