"""Random lives of a crawl: each frontier does what the model does.

A new backend adds four lines: a machine that makes it, and the test case of that machine.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, settings

from contract.frontier.machine import FrontierMachine
from support.frontiers import Backend, SqliteBackend


class SqliteMachine(FrontierMachine):
    def make_backend(self, folder: Path) -> Backend:
        return SqliteBackend(folder / "frontier.db")


SqliteMachine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSqliteModel = SqliteMachine.TestCase
