"""The results contract on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.files_suite import FilesContract
from contract.recrawl_suite import RecrawlContract
from contract.results_suite import Connect, ResultsContract
from shoal.results.postgres import PostgresResults
from support.postgres_servers import PostgresServer


class TestPostgresResults(ResultsContract, RecrawlContract, FilesContract):
    keeps_nul = False
    keeps_bytes = False

    @pytest.fixture
    async def connect(self, postgres_server: PostgresServer) -> AsyncIterator[Connect]:
        address = postgres_server.new_database("contract")
        opened: list[PostgresResults] = []

        def connect() -> PostgresResults:
            opened.append(PostgresResults(address))
            return opened[-1]

        yield connect
        for results in opened:
            await results.close()
