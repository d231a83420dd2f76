"""The inbox of a crawl: a plain list on Redis. Any program may LPUSH seeds; the fleet empties it.

One worker at a time empties it. It reads the oldest entries, queues them, puts rejected ones aside,
and only then removes what it has read: if it dies in between, another worker reads them again, and
to the frontier they are duplicates.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from redis.exceptions import NoScriptError

from shoal.drivers.redis.link import RedisLink
from shoal.errors import BadUrl, StorageError
from shoal.frontier.redis.names import inbox_key, rejected_key
from shoal.frontier.redis.packing import pack
from shoal.frontier.redis.scripts import all_scripts, script
from shoal.frontier.values import Added, Entry

BATCH = 200
LOCK_MS = 5_000
"""How long others wait for a worker that died while it emptied the inbox. If this is too short, no
harm is done."""
REJECTED_KEPT = 10_000
"""How many rejected entries are kept: the newest ones."""
ENTRY_KEPT = 2000
"""How many characters of a rejected entry are kept."""

log = logging.getLogger("shoal")


class Rejected(msgspec.Struct):
    """A rejected entry, as it is put aside."""

    entry: str
    reason: str
    at: float


async def collect(
    link: RedisLink,
    crawl: str,
    read: Callable[[bytes], Entry],
    add: Callable[[Sequence[Entry]], Awaitable[Added]],
) -> Added:
    """Queue the oldest entries. Does nothing while another worker does."""
    inbox = inbox_key(crawl)
    token = secrets.token_hex(8)
    if not await _is_list(link, inbox):
        return Added()
    if not await link.command("SET", _lock(inbox), token, "NX", "PX", LOCK_MS):
        # Should the clock have been set back meanwhile, the lock ends in time all the same.
        await link.command("PEXPIRE", _lock(inbox), LOCK_MS, "LT")
        return Added()
    try:
        raw = await link.command("LRANGE", inbox, -BATCH, -1)
        entries, rejected = _read_all(reversed(raw), read)
        added = await add(entries) if entries else Added()
        await _put_aside(link, crawl, rejected)
    except BaseException:
        with suppress(StorageError):  # Then the lock expires by itself.
            await _done(link, inbox, token, 0)
        raise
    await _done(link, inbox, token, len(raw))
    return added


def _read_all(raw: Any, read: Callable[[bytes], Entry]) -> tuple[list[Entry], list[Rejected]]:
    entries, rejected = [], []
    for line in raw:
        try:
            entries.append(_storable(read(line)))
        except BadUrl as error:
            text = line[: 4 * ENTRY_KEPT].decode("utf-8", "replace")[:ENTRY_KEPT]
            rejected.append(Rejected(text, str(error), time.time()))
    return entries, rejected


def _storable(entry: Entry) -> Entry:
    try:
        pack(entry)
    except (ValueError, OverflowError) as error:
        raise BadUrl(f"cannot be stored: {error}") from None
    return entry


async def _put_aside(link: RedisLink, crawl: str, rejected: list[Rejected]) -> None:
    if not rejected:
        return
    key = rejected_key(crawl)
    await link.command("LPUSH", key, *map(msgspec.json.encode, rejected))
    await link.command("LTRIM", key, 0, REJECTED_KEPT - 1)
    # Other programs wrote it, and it may be shown on a terminal.
    reason = "".join(char if char.isprintable() else "?" for char in rejected[0].reason)
    log.warning(
        "%d entries of %s are no tasks, the first because %s: see %s",
        len(rejected),
        inbox_key(crawl),
        reason,
        key,
    )


async def _done(link: RedisLink, inbox: str, token: str, count: int) -> None:
    try:
        await link.run_known(script("collected"), inbox, token, count)
    except NoScriptError:
        await link.load(all_scripts(), inbox)
        await link.run_known(script("collected"), inbox, token, count)


async def _is_list(link: RedisLink, inbox: str) -> bool:
    """Whether the inbox is a list. A key of another type in its place is renamed."""
    kind = (await link.command("TYPE", inbox)).decode()
    if kind in ("list", "none"):
        return bool(kind == "list")
    aside = f"shoal:not-a-list:{{{inbox}}}"
    log.warning("%s is no list but a %s: moved to %s", inbox, kind, aside)
    await link.command("RENAME", inbox, aside)
    return False


def _lock(inbox: str) -> str:
    return f"shoal:lock:{{{inbox}}}"
