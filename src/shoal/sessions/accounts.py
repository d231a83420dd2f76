"""Parses accounts: names and passwords in CSV or JSON.

Errors are one line with the number of the line or entry, and never show its content.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from shoal.core.session_config import (
    MAX_ACCOUNTS,
    USER_AGENT,
    check_account_name,
    check_user_agent,
)
from shoal.errors import ConfigError

NAMES = ("name", "user", "username", "email")
"""The columns that may name an account. The first one that is filled in counts."""

_BOM = "\ufeff"


class KnownAccount(msgspec.Struct, frozen=True):
    """An account that this process can log in."""

    name: str
    fields: Mapping[str, str]
    """All columns, including the name and the password."""

    def __repr__(self) -> str:
        return f"KnownAccount({self.name})"


Accounts = dict[str, KnownAccount]
"""Accounts by name, in the order they were read."""


def read_accounts(text: str) -> Accounts:
    """Parse accounts: CSV whose first line names the columns, or a JSON list of objects.

    Raises ConfigError, also if there are no accounts: an error message in place of the accounts
    must not empty a group.
    """
    plain = text.removeprefix(_BOM)
    rows = _json_rows(plain) if is_json(plain) else _csv_rows(plain)
    return collected((where, _account(fields, where)) for where, fields in rows)


def is_json(text: str) -> bool:
    """Whether a text can only be meant as JSON, by its first character."""
    return text.lstrip().startswith(("[", "{"))


def collected(found: Iterable[tuple[str, KnownAccount]]) -> Accounts:
    """Collect accounts by name. Each comes with where it was found, for error messages.

    Raises ConfigError for a duplicate, for too many accounts, and for none.
    """
    accounts: Accounts = {}
    for where, account in found:
        if account.name in accounts:
            raise ConfigError(f"{where}: an account of this name was there before")
        accounts[account.name] = account
        if len(accounts) > MAX_ACCOUNTS:
            raise ConfigError(f"more than {MAX_ACCOUNTS:,} accounts")
    if not accounts:
        raise ConfigError("no accounts are in it")
    return accounts


def _account(fields: Mapping[str, str], where: str) -> KnownAccount:
    name = next((fields[column] for column in NAMES if fields.get(column)), "")
    if not name:
        raise ConfigError(
            f"{where}: it has no name (a column {', '.join(NAMES[:-1])} or {NAMES[-1]})"
        )
    try:
        check_account_name(name)
        check_user_agent(fields.get(USER_AGENT, ""))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return KnownAccount(name, fields)


def _csv_rows(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    while True:
        try:
            row = next(reader, None)
        except csv.Error:
            raise ConfigError(f"line {reader.line_num}: not CSV") from None
        if row is None:
            return
        where = f"line {reader.line_num}"
        if not any(row):
            continue
        if not columns:
            columns = _columns(row)
            continue
        if len(row) != len(columns):
            raise ConfigError(f"{where}: it has {len(row)} columns, the first line {len(columns)}")
        yield where, dict(zip(columns, row, strict=True))


def _columns(row: list[str]) -> list[str]:
    """The names of the columns. Errors do not show them, as a file without a header has an account
    in its first line."""
    columns = [name.strip() for name in row]
    if "" in columns or len(set(columns)) < len(columns):
        raise ConfigError("line 1: each column needs a name of its own")
    if not set(columns) & set(NAMES):
        raise ConfigError(f"line 1: it names the columns, and one of them is {' or '.join(NAMES)}")
    return columns


def _json_rows(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        entries = msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise ConfigError("not JSON: a list of objects") from None
    for number, entry in enumerate(entries, 1):
        where = f"entry {number}"
        yield where, {name: _text(value, where) for name, value in entry.items()}


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{where}: a value that is no text")
    return str(value)
