"""Takes back exits and accounts lent with void leases, which no worker may be left to end."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.frontier.sqlite.account_returning import lose_account
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.sqlite.statements import SQL

SWEPT_AT_ONCE = 1000
"""How many pairs are removed, and how many leases are looked at, at a time."""

Lost = tuple[str, str, str, float]
"""An exit or "", an account or "", the host for which they were lent, and when."""


def take_back_all(exits: Exits, crawl_id: int) -> None:
    """Take back everything lent with the leases of a crawl. All of them are void."""
    _take_back(exits, exits.connection.execute(SQL["passages_of_crawl"], (crawl_id,)).fetchall())
    exits.save()
    exits.connection.execute(SQL["forget_passages"], (crawl_id,))


def sweep(exits: Exits) -> None:
    """Now and then, remove pairs without information, and take back what expired leases had."""
    if not exits.is_sweep_due:
        return
    exits.note_sweep()
    values = exits.clock.by_machine, SWEPT_AT_ONCE
    rows = exits.connection.execute(SQL["expired_passages"], values).fetchall()
    _take_back(exits, (row[1:] for row in rows))
    ids = msgspec.json.encode([row[0] for row in rows]).decode()
    exits.connection.execute(SQL["unlend"], (ids,))
    exits.connection.execute(SQL["sweep_pairs"], (exits.now, SWEPT_AT_ONCE))
    exits.connection.execute(SQL["note_sweep"], (exits.now,))


def _take_back(exits: Exits, lent: Iterable[Lost]) -> None:
    for exit_id, account_id, host, leased_at in lent:
        if account_id:
            lose_account(exits, account_id)
        if exit_id and (exit_ := exits.exit(exit_id)) is not None:
            pair = exits.pair(host, exit_)
            exits.give_back(exit_, pair, leased_at)
            if pair is not None:
                exits.put_pair(host, exit_id, pair)
