"""Where a password comes from: a file, a terminal that does not show it, or another program."""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.cli.first_users import read_password
from ottla.cli.running import Misused


def password_from(user: str, file: Path | None) -> str:
    """Raises Misused where there is none."""
    try:
        if file is not None:
            password = read_password(file)
        elif sys.stdin.isatty():
            password = _asked(user)
        else:
            password = sys.stdin.readline().rstrip("\r\n")
    except EOFError:
        password = ""
    except UnicodeDecodeError:
        raise Misused(f"the password of {user} is not text in UTF-8") from None
    if not password:
        raise Misused(f"the password of {user} is empty")
    return password


def _asked(user: str) -> str:
    from getpass import getpass

    password = getpass(f"Password of {user}: ")
    if getpass("Once more: ") != password:
        raise Misused("these were two different passwords; nothing was changed")
    return password
