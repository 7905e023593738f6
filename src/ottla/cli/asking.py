"""Asking before something is lost."""

from __future__ import annotations

import sys

import typer

from ottla.cli.running import Refused


def confirm(question: str, yes: bool) -> None:
    """Ask whoever sits at the terminal. Scripts are not asked: they were written on purpose."""
    if not yes and sys.stdin.isatty() and not typer.confirm(question):
        raise Refused("nothing was changed")
