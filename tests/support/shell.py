"""The command line without a process for each command."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

import pytest

from shoal import cli


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Shell(NamedTuple):
    """Runs commands in this process, in the folder it is in."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def shoal(self, *args: str) -> Ended:
        self.monkeypatch.setattr(sys, "argv", ["shoal", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, *self.capsys.readouterr())
