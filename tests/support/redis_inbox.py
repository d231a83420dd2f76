"""Fills the inbox of a crawl on Redis as other programs do, and reads what became of it."""

from __future__ import annotations

import msgspec
import redis

from shoal.config import Rules
from shoal.frontier.admission import Admission
from shoal.frontier.redis.inbox import Rejected
from shoal.frontier.values import Entry
from shoal.seeds.seeding import read_seed
from support.frontiers import CRAWL, Client

INBOX = f"shoal:{CRAWL}:inbox"
REJECTED = f"shoal:{CRAWL}:rejected"
LOCK = f"shoal:lock:{{{INBOX}}}"

_admission = Admission(Rules())


def read(text: bytes) -> Entry:
    """An inbox entry, read as the fleet reads it."""
    return _admission.admit(read_seed(text))


def url(number: int) -> str:
    """The URL of a page."""
    return f"http://a.example/{number}"


def push(raw: redis.Redis, *lines: str | bytes) -> None:
    """Push lines to the inbox as another program would, oldest first."""
    raw.lpush(INBOX, *lines)


def rejected(raw: redis.Redis) -> list[Rejected]:
    """The rejected entries, newest first."""
    return [msgspec.json.decode(line, type=Rejected) for line in raw.lrange(REJECTED, 0, -1)]


async def urls_of(client: Client) -> list[str]:
    """Lease all waiting tasks, and return their URLs in order."""
    return [lease.task.url for lease in await client.lease(1000)]
