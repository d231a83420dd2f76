"""Accounts as a step reads and changes them, apart from their state as exits.

core/identity_policy.py decides what the values mean.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.core.identities import AccountState
from shoal.drivers.sqlite import write_rows
from shoal.frontier.sqlite.statements import SQL

_read_state = msgspec.json.Decoder(AccountState).decode
_encode = msgspec.json.encode


class Accounts:
    """The accounts of all groups in one step. Changes are collected, and written by `save`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._states: dict[str, AccountState] = {}
        self._changed: dict[str, AccountState] = {}
        self._changed_jars: dict[str, bytes] = {}

    def read(self, account_ids: Iterable[str]) -> None:
        """Read accounts that are needed soon. One that was never used has a fresh state."""
        if unread := [each for each in set(account_ids) if each not in self._states]:
            found = dict(self._connection.execute(SQL["accounts"], (_text(unread),)).fetchall())
            for account_id in unread:
                body = found.get(account_id)
                self._states[account_id] = _read_state(body) if body else AccountState()

    def state(self, account_id: str) -> AccountState:
        """The state of an account. After changing it, call `put`."""
        if account_id not in self._states:
            self.read([account_id])
        return self._states[account_id]

    def jar(self, account_id: str) -> bytes:
        """The cookies of an account."""
        if account_id in self._changed_jars:
            return self._changed_jars[account_id]
        found = self._connection.execute(SQL["jar_of_account"], (account_id,)).fetchone()
        return bytes(found[0]) if found else b""

    def jars(self, account_ids: Iterable[str]) -> dict[str, bytes]:
        """The stored cookies of several accounts."""
        rows = self._connection.execute(SQL["jars_of_accounts"], (_text(list(account_ids)),))
        return dict(rows.fetchall())

    def put(self, account_id: str, jar: bytes | None = None) -> None:
        """Note that an account has changed, and its cookies too, if given."""
        self._changed[account_id] = self.state(account_id)
        if jar is not None:
            self._changed_jars[account_id] = jar

    def save(self) -> None:
        """Write all changes."""
        rows = [
            (account_id, state.worker, state.is_banned, _text(state))
            for account_id, state in self._changed.items()
        ]
        write_rows(self._connection, SQL["save_accounts"], rows)
        for account_id, jar in self._changed_jars.items():
            self._connection.execute(SQL["save_jar_of_account"], (jar, account_id))
        self._changed.clear()
        self._changed_jars.clear()


def _text(value: Any) -> str:
    return _encode(value).decode()
