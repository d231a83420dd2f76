"""Notes and leadership of coordinators, on Redis."""

from __future__ import annotations

from typing import Any

from shoal.drivers.redis.link import RedisLink
from shoal.drivers.redis.scripts import Argument
from shoal.frontier.board import Deposed, Leader, Notes
from shoal.frontier.redis.scripts import script
from shoal.frontier.redis.shard import Clock

LEADER = "shoal:{coordinator}:leader"
NOTES = "shoal:{coordinator}:notes:"


class RedisNotes(Notes):
    """Notes that any number of machines share."""

    def __init__(self, link: RedisLink, clock: Clock | None) -> None:
        self._link = link
        self._clock = clock

    async def lead(self, holder: str, ttl_s: float) -> Leader | None:
        leader = await self._leader_after(holder, round(ttl_s * 1e6))
        return leader if leader and leader.holder == holder else None

    async def resign(self, holder: str) -> None:
        await self._leader_after(holder, 0)

    async def leader(self) -> Leader | None:
        return await self._leader_after("", 0)

    async def write(
        self, topic: str, name: str, text: bytes | None, leader: Leader | None = None
    ) -> None:
        if leader is not None:
            values = (leader.term, leader.holder, name) + (() if text is None else (text,))
            if not await self._eval("note", [LEADER, NOTES + topic], *values):
                raise Deposed
        elif text is None:
            await self._link.command("HDEL", NOTES + topic, name)
        else:
            await self._link.command("HSET", NOTES + topic, name, text)
        await self._link.replicated()

    async def swap(self, topic: str, name: str, known: bytes | None, text: bytes) -> bool:
        values = (name, text) + (() if known is None else (known,))
        is_written = bool(await self._eval("swap_note", [NOTES + topic], *values))
        await self._link.replicated()
        return is_written

    async def read(self, topic: str, name: str) -> bytes | None:
        text: bytes | None = await self._link.command("HGET", NOTES + topic, name)
        return text

    async def all(self, topic: str) -> dict[str, bytes]:
        notes = await self._link.command("HGETALL", NOTES + topic)
        return {_text(name): text for name, text in sorted(notes.items())}

    async def _leader_after(self, holder: str, micro: int) -> Leader | None:
        """Ask to lead for so many microseconds, or to resign with 0; return who leads then."""
        now = f"{self._clock() * 1e6:.0f}" if self._clock else ""
        held = await self._eval("lead", [LEADER], now, holder, micro)
        return Leader(_text(held[0]), int(held[1])) if held else None

    async def _eval(self, name: str, keys: list[str], *args: Argument) -> Any:
        return await self._link.run(script(name), keys, *args)


def _text(name: bytes) -> str:
    """Decode a name. Other programs can write to the server, so it may be any bytes."""
    return name.decode("utf-8", "replace")
