"""A folder whose results store tests fill directly, and the commands that read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import chdir
from pathlib import Path
from typing import Any, TypeVar

from contract.results_suite import some_item
from shoal.core.records import StoredItem
from shoal.results import results_at
from shoal.results.port import Batch, Results
from support.processes import Ended, Folder

T = TypeVar("T")

STORE = "sqlite:///shoal.db"


class Stored(Folder):
    """A folder whose results store tests fill directly."""

    def ask(self, question: Callable[[Results], Awaitable[T]], address: str = STORE) -> T:
        """Call `question` with a results store, by default the folder's, and return its result."""

        async def asking() -> T:
            async with results_at(address) as results:
                return await question(results)

        with chdir(self.path):
            return asyncio.run(asking())

    def save(self, crawl: str, *items: StoredItem, **more: Any) -> None:
        """Store a batch of items; `more` are its other fields."""
        self.ask(lambda results: results.save(crawl, Batch(items=list(items), **more)))

    def fine(self, *args: str | Path) -> Ended:
        """Run a command, which must succeed."""
        ended = self.shoal(*args)
        assert ended.code == 0, ended
        return ended

    def refused(self, *args: str | Path) -> str:
        """Run a command that must be refused, and return its error, which must be one line."""
        ended = self.shoal(*args)
        assert (ended.code, ended.out) == (2, ""), ended
        assert ended.err.count("\n") == 1
        return ended.err


def product(key: str, at: float = 1.0, **fields: Any) -> StoredItem:
    """An item with these fields."""
    return some_item(key, at=at, data=json.dumps(fields).encode())
