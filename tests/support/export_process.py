"""Exports very many items and prints the peak of memory, in bytes, that this took.

python -m support.export_process FORMAT FILE

The kernel reports the peak. Tracing every allocation would take ten times as long and would miss
those of libraries.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec.structs import replace

from contract.results_suite import CRAWL, some_item
from shoal.core.records import StoredItem
from shoal.export import Format, export
from shoal.results.port import EVERYTHING, Wanted
from shoal.results.sqlite.store import SqliteResults

FEW, MANY = 1_000, 200_000


class Many(SqliteResults):
    """A store that seems to have very many items."""

    def __init__(self, path: Path, many: int) -> None:
        super().__init__(path)
        self._many = many

    async def items(self, crawl: str, wanted: Wanted = EVERYTHING) -> AsyncIterator[StoredItem]:
        item = some_item()
        for n in range(self._many):
            data = b'{"name":"thing","price":%d.5,"stock":%d}' % (n, n)
            yield replace(item, key=f"k{n}", data=data)


def peak_bytes() -> int:
    """The most memory that this process has used so far."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


async def _export(target: Path, fmt: Format, many: int) -> None:
    store = Many(target.with_suffix(".db"), many)
    try:
        exported = await export(store, CRAWL, target, fmt)
    finally:
        await store.close()
    if exported != many:
        raise SystemExit(f"{exported} items instead of {many}")


def main() -> None:
    fmt, target = Format(sys.argv[1]), Path(sys.argv[2])
    asyncio.run(_export(target, fmt, FEW))  # Loads the libraries, whose memory does not count.
    before = peak_bytes()
    asyncio.run(_export(target, fmt, MANY))
    print(peak_bytes() - before)


if __name__ == "__main__":
    main()
