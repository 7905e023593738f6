"""The root of all commands: what is used wrongly is told in one line, as everything else that goes wrong."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer
from typer.core import TyperGroup

from ottla.cli.exit_codes import BAD_USAGE, FAILED

# Typer has no name of its own for it.
UsageError: Final[Any] = typer.BadParameter.__base__

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Commands(TyperGroup):
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(Commands, self).main(
                args, prog_name, complete_var, False, windows_expand_args, **extra
            )

        if not standalone_mode:
            return run()
        try:
            code = run()
        except UsageError as error:
            sys.exit(_tell(error))
        except typer.Abort:
            print("ottla: stopped; nothing was changed", file=sys.stderr)
            sys.exit(FAILED)
        except OSError as error:
            # Files have names. What has none and is full is where our output goes.
            if error.filename or error.errno not in _FULL:
                raise
            drop_output()
            print(f"ottla: cannot write the output: {error.strerror}", file=sys.stderr)
            sys.exit(FAILED)
        sys.exit(code if isinstance(code, int) else 0)


def drop_output() -> None:
    """What is left of it goes nowhere. Python would complain once more when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _tell(error: Any) -> int:
    said = error.format_message()
    if "\n" in said:  # a command of commands without any: this is its help
        error.show()
        return BAD_USAGE
    said = said.replace("Value error, ", "").rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else "ottla"
    print(f"ottla: {said}; see `{command} --help`", file=sys.stderr)
    return BAD_USAGE
