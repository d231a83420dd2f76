"""The results contract over a stream and a deliverer, and what only the stream does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contract.files_suite import FilesContract
from contract.recrawl_suite import RecrawlContract
from contract.results_suite import Connect, ResultsContract
from shoal.results.port import Results
from shoal.results.postgres import PostgresResults
from shoal.results.sqlite.store import SqliteResults
from support.postgres_servers import PostgresServer
from support.redis_servers import RedisServer
from support.streams import DeliveredResults, stream_url


class StreamContract(ResultsContract, RecrawlContract, FilesContract):
    """The suite over a stream. A store behind it is a subclass with one fixture, `store`."""

    @pytest.fixture
    async def connect(
        self, redis_server: RedisServer, store: Callable[[], Results]
    ) -> AsyncIterator[Connect]:
        redis_server.client().flushall()
        opened: list[Results] = []

        def connect() -> Results:
            opened.append(DeliveredResults(stream_url(redis_server), store()))
            return opened[-1]

        yield connect
        for results in opened:
            await results.close()


@pytest.mark.rare
class TestStreamIntoPostgres(StreamContract):
    keeps_nul = False
    keeps_bytes = False

    @pytest.fixture
    def store(self, postgres_server: PostgresServer) -> Callable[[], Results]:
        address = postgres_server.new_database("contract")
        return lambda: PostgresResults(address)


class TestStreamIntoSqlite(StreamContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Callable[[], Results]:
        return lambda: SqliteResults(tmp_path / "shoal.db")
