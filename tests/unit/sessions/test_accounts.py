"""Accounts as people write them, and where they are read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from shoal.core.session_config import MAX_ACCOUNTS
from shoal.errors import ConfigError
from shoal.sessions import sources
from shoal.sessions.accounts import read_accounts
from shoal.sessions.sources import read_source, shown

CANARY = "canary-4711"
CSV = f"user,password,city\nalice,{CANARY},Rome\nbob, two words ,\n"


def test_csv_with_free_columns() -> None:
    accounts = read_accounts("\ufeff" + CSV)
    assert list(accounts) == ["alice", "bob"]
    assert accounts["alice"].fields == {"user": "alice", "password": CANARY, "city": "Rome"}
    assert accounts["bob"].fields["password"] == " two words ", "passwords stay as they are"


def test_json_with_free_fields() -> None:
    text = json.dumps([{"email": "a@b.example", "pin": 17}, {"name": "x", "user": "y"}])
    accounts = read_accounts(text)
    assert list(accounts) == ["a@b.example", "x"]
    assert accounts["a@b.example"].fields["pin"] == "17"


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("name,user,username,email", "a"),
        ("email,username,user", "c"),
        ("email,username", "b"),
        ("email,password", "a"),
    ],
)
def test_what_names_an_account(columns: str, name: str) -> None:
    values = list("abcd")[: columns.count(",") + 1]
    assert list(read_accounts(f"{columns}\n{','.join(values)}\n")) == [name]


def test_nothing_of_an_account_is_shown_but_its_name() -> None:
    account = read_accounts(CSV)["alice"]
    assert repr(account) == "KnownAccount(alice)"
    assert CANARY not in f"{account} {account!r} {[account]}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no accounts are in it"),
        ("user,password\n", "no accounts are in it"),
        ("[]", "no accounts are in it"),
        (f"alice,{CANARY}\n", "line 1: it names the columns, and one of them is name or user"),
        ("user,user\na,b\n", "line 1: each column needs a name of its own"),
        (f"user,password\n\na,{CANARY},x\n", "line 3: it has 3 columns, the first line 2"),
        (f"user,password\n,{CANARY}\n", "line 2: it has no name (a column name, user"),
        (f"user,password\na b{CANARY},x\n", "line 2: the name of an account has at most 64"),
        (f"user,password\na,{CANARY}\na,x\n", "line 3: an account of this name was there before"),
        (f'user,password\na,"{CANARY}\n', "line 2: not CSV"),
        (f'[{{"user": "{CANARY}"', "not JSON: a list of objects"),
        (f'{{"user": "{CANARY}"}}', "not JSON: a list of objects"),
        (f'[{{"user": "a", "password": ["{CANARY}"]}}]', "entry 1: a value that is no text"),
        ('[{"user": "a"}, {"user": "a"}]', "entry 2: an account of this name was there before"),
        (f'user,user_agent\na,"{CANARY}\n"\n', "line 3: user_agent: a line of at most 500 char"),
        (f"user,user_agent\na,{CANARY * 99}\n", "line 2: user_agent: a line of at most 500 char"),
        ("<html>sign in first</html>", "line 1: it names the columns"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_without_a_value(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_accounts(text)
    assert str(raised.value).startswith(says)
    assert CANARY not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_people_may_log_in_with_other_names_than_accounts_have() -> None:
    with pytest.raises(ConfigError, match="give it one in a column name"):
        read_accounts("user,password\njörg o'neill,x\n")
    (account,) = read_accounts("name,user,password\njorg,jörg o'neill,x\n").values()
    assert (account.name, account.fields["user"]) == ("jorg", "jörg o'neill")


def test_there_is_a_limit() -> None:
    rows = "\n".join(f"u{number}" for number in range(MAX_ACCOUNTS + 1))
    with pytest.raises(ConfigError, match="more than 10,000 accounts"):
        read_accounts(f"user\n{rows}\n")


async def names(source: str, environ: dict[str, str] | None = None) -> list[str]:
    return list(await read_source(source, environ or {}))


async def test_files_and_variables(tmp_path: Path) -> None:
    file = tmp_path / "accounts.csv"
    file.write_text(CSV, "utf-8")
    assert await names(f"file:{file}") == ["alice", "bob"]
    assert await names("env:A", {"A": CSV}) == ["alice", "bob"]
    assert await names("env:A", {"A": str(file)}) == ["alice", "bob"], "a secret that is mounted"
    assert await names("env:A", {"A": '[{"user": "a"}]'}) == ["a"]


def python(code: str) -> str:
    return f"command:{sys.executable} -c '{code}'"


async def test_programs() -> None:
    assert await names(python('print("user,password"); print("alice,$HOME;x")')) == ["alice"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("file:/none.csv", "file:/none.csv: No such file or directory"),
        ("env:NONE", "env:NONE: the variable is not set"),
        ("env:ONE", "env:ONE: No such file or directory"),
        ("command:", "command:: no program is named"),
        ("command:no-such-program x", "command:no-such-program ...: No such file or directory"),
        (f"command:false '{CANARY}", "command:false ...: not a command line"),
        ("command:false", "command:false: ended with exit code 1: run it by hand to see why"),
        ("command:true", "command:true: no accounts are in it"),
    ],
)
async def test_sources_that_cannot_be_read(source: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        await read_source(source, {"ONE": "none.csv"})
    assert str(raised.value) == says


async def test_what_a_program_complains_of_is_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    complains = python(f'import sys; sys.exit("{CANARY}")')
    with pytest.raises(ConfigError, match=r"\.\.\.: ended with exit code 1") as raised:
        await read_source(complains, {})
    assert CANARY not in str(raised.value) + "".join(capfd.readouterr())


async def test_a_program_that_says_nothing_or_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "COMMAND_TIMEOUT_S", 0.2)
    with pytest.raises(ConfigError, match=r"^command:sleep \.\.\.: no answer within 0.2 s$"):
        await read_source("command:sleep 600", {})
    monkeypatch.setattr(sources, "COMMAND_TIMEOUT_S", 20.0)
    monkeypatch.setattr(sources, "MAX_BYTES", 1024 * 1024)
    with pytest.raises(ConfigError, match=r"^command:yes: larger than 1 MiB$"):
        await read_source("command:yes", {})


def test_a_source_is_shown_without_arguments() -> None:
    assert shown(f"command:vault read -token={CANARY}") == "command:vault ..."
    assert shown("file:accounts.csv") == "file:accounts.csv"
