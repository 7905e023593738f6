"""Directories that are made once for all sessions of a user."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path


def cached(kind: str, content: str, make: Callable[[Path], None], cache: Path | None = None) -> Path:
    """The directory for this content, in the user's cache; `make` fills it if it is not there.

    It is named by what is in it, so that it is never changed, whoever makes it at the same time.
    """
    home = (cache or cache_directory()) / f"{kind}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, ignore_cleanup_errors=True) as unfinished:
            made = Path(unfinished) / "made"
            made.mkdir()
            make(made)
            try:
                made.rename(home)
            except OSError:
                if not home.exists():  # else somebody else has made it meanwhile
                    raise
    return home


def cache_directory() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    preferred = (Path(given) if given else Path.home() / ".cache") / "ottla"
    try:
        preferred.mkdir(parents=True, exist_ok=True)
        if os.access(preferred, os.W_OK):
            return preferred
    except OSError:
        pass
    return _temporary_directory()


def _temporary_directory() -> Path:
    """What is in it gets run, so where everybody may write it has to be ours alone."""
    shared = Path(tempfile.gettempdir()) / f"ottla-{os.getuid()}"
    shared.mkdir(mode=0o700, exist_ok=True)
    found = shared.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return shared
    return Path(tempfile.mkdtemp(prefix="ottla-"))
