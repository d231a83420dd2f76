"""Random lives of a crawl: each frontier does what the model does.

A new backend adds four lines: a machine that makes it, and the test case of that machine.
"""

from __future__ import annotations

from pathlib import Path

from contract.frontier.machine import FrontierMachine
from support.frontiers import Backend, SqliteBackend
from support.state_machines import lives


class SqliteMachine(FrontierMachine):
    def make_backend(self, folder: Path) -> Backend:
        return SqliteBackend(folder / "frontier.db")


TestSqliteModel = lives(SqliteMachine, 150, steps=60)
