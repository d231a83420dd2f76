"""The accounts of all groups on Redis: reads their state, and holds one by hand."""

from __future__ import annotations

from msgspec.structs import replace

from shoal.core.exits import Lent
from shoal.core.identities import Account, IdentityReport, pool_of_session, session_of_pool
from shoal.drivers.redis.link import RedisLink
from shoal.frontier.port import Held
from shoal.frontier.redis.exit_forms import account_of
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.forms import identity_of, pack_values, report_of
from shoal.frontier.redis.names import EXITS

_READ_AT_ONCE = 1000


class RedisAccounts:
    """The accounts that all machines share. Each account is stored as an exit, too: see
    exits.py."""

    def __init__(self, link: RedisLink, exits: RedisExits) -> None:
        self._link = link
        self._exits = exits

    async def of(self, group: str, *, jars: bool) -> list[Account]:
        """The accounts of a group that are listed, by name, with their cookies or without."""
        listed, ahead_s = await self._exits.of_moment(pool_of_session(group))
        found = list[Account]()
        for first in range(0, len(listed), _READ_AT_ONCE):
            some = listed[first : first + _READ_AT_ONCE]
            ids = [exit_.id for exit_ in some]
            states = await self._link.command("HMGET", f"{EXITS}accounts", *ids)
            kept = [b""] * len(ids)
            if jars:
                kept = await self._link.command("HMGET", f"{EXITS}jars", *ids)
            for exit_, packed, jar in zip(some, states, kept, strict=True):
                state = account_of(packed)
                state.login_at = max(state.login_at - ahead_s, 0.0)
                name = session_of_pool(exit_.id)
                found.append(Account(name=name, exit=exit_, state=state, jar=jar or b""))
        return found

    async def hold(self, identity: str, host: str | None, seconds: float) -> Held | None:
        """Hold an account, so that no worker gets it. None: it cannot be held now."""
        account, span = pool_of_session(identity), round(seconds * 1e6)
        held = await self._exits.run("hold", account, host or "", span, int(host is not None))
        if held is None:
            return None
        until, exit_id, session, pool, *told = held
        lent = Lent(exit_id.decode(), session, pool.decode()) if exit_id else None
        return Held(identity_of(told), lent, int(until) / 1e6)

    async def hold_on(self, held: Held, seconds: float) -> Held | None:
        """Prolong a hold until `seconds` from now. None: the hold is over."""
        until = await self._exits.run("hold_on", *_whose(held), round(seconds * 1e6))
        return None if until is None else replace(held, until=int(until) / 1e6)

    async def let_go(self, held: Held, report: IdentityReport) -> bool:
        """End a hold. False: it was over already."""
        packed = pack_values(report_of(report))
        return bool(await self._exits.run("let_go", *_whose(held), packed))


def _whose(held: Held) -> tuple[str, int]:
    """The account and the end of a hold, by which the scripts recognise it."""
    return pool_of_session(held.identity.name), round(held.until * 1e6)
