"""`ottla` as a test calls it: in this process, which is quicker than one of its own."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from typer.testing import CliRunner

from ottla.cli.main import app


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`cli("topic", "list")` against one broker; fails the test unless the code is the one expected."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, given: str | bytes | None = None, code: int = 0) -> Ran:
        runner = CliRunner(env={"OTTLA_BOOTSTRAP": self.bootstrap, "FORCE_COLOR": "", "NO_COLOR": ""})
        result = runner.invoke(app, arguments, input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, f"{arguments}: {result.exit_code}\n{result.stdout}{result.stderr}"
        return Ran(result.exit_code, result.stdout, result.stderr)

    def json(self, *arguments: str, given: str | bytes | None = None) -> Any:
        return self(*arguments, "--json", given=given).json()

    def fails(self, *arguments: str, given: str | bytes | None = None, code: int = 1) -> str:
        """What a command that cannot be done says, which is one line."""
        ran = self(*arguments, given=given, code=code)
        assert ran.err.startswith("ottla: ") and ran.err.count("\n") == 1, ran.err
        return ran.err
