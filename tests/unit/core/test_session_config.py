"""[sessions.NAME] tables: what they may say, how mistakes are told, and what --accounts means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal import config
from shoal.config import Settings
from shoal.core.session_config import SessionConfig, check_account_name, check_group_name
from shoal.errors import ConfigError
from shoal.fleet.child import WorkerOrder

CANARY = "canary-4711"
TABLES = """
[sessions.shop]
accounts = ["file:accounts.csv", "command:pass show shop"]
refresh = "5m"
login_url = "https://shop.example/login"
form = "form#login"
fields = { user = "{user}", password = "{password}" }
logged_in = "a.logout"
concurrency = 2
timeout = "30m"

[sessions.club]
accounts = "env:CLUB"
"""


def load(folder: Path, text: str, **sources: Any) -> Settings:
    (folder / "shoal.toml").write_text(text, "utf-8")
    return config.load(folder=folder, **sources)


def test_a_table_says_where_accounts_are_and_how_they_log_in(tmp_path: Path) -> None:
    settings = load(tmp_path, TABLES)
    shop = settings.session_groups["shop"]
    assert shop.sources == ["file:accounts.csv", "command:pass show shop"]
    assert (shop.concurrency, shop.logged_in, shop.refresh) == (2, "a.logout", "5m")
    assert settings.session_groups["club"] == SessionConfig(accounts="env:CLUB")
    assert settings.rules.sessions == ("club", "shop"), "tasks may name all of them"
    assert settings.rules.session is None, "but none does by default"


def test_the_settings_may_say_which_of_them(tmp_path: Path) -> None:
    settings = load(tmp_path, TABLES, options={"sessions": "shop", "session": "shop#alice"})
    assert settings.rules.sessions == ("shop",)
    assert settings.rules.session == "shop#alice"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "accounts is missing"),
        ("accounts = 5", "accounts: Expected `str | array`, got `int`"),
        ("accounts = []", "accounts: none are named"),
        ("accounts = 'accounts.csv'", "accounts: write file:PATH, env:NAME or command:PROGRAM"),
        (f"accounts = 'alice:{CANARY}'", "accounts: write file:PATH"),
        ("accounts = 'env:A'\nconcurrency = 0", "concurrency must be a whole number, at least 1"),
        ("accounts = 'env:A'\nrefresh = 'soon'", "refresh: not a time span: 'soon'"),
        ("accounts = 'env:A'\ntimeout = '5'", "timeout: not a time span: '5'"),
        ("accounts = 'env:A'\nuser_agent = 'a\tb'", "user_agent: a line of at most 500"),
        ("accounts = 'env:A'\nform = 'form'", "form: needs login_url and fields"),
        ("accounts = 'env:A'\nfields = { a = 'b' }", "fields: needs form"),
        ("accounts = 'env:A'\nbutton = 'b'", "fields: needs form"),
        ("accounts = 'env:A'\nlogin_url = 'nowhere'", "not a URL: 'nowhere'"),
        (f"accounts = 'env:A'\npassword = '{CANARY}'", "no key 'password'"),
    ],
)
def test_mistakes_name_the_table_and_no_value(tmp_path: Path, lines: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, f"[sessions.shop]\n{lines}\n")
    assert str(raised.value).startswith(f"shoal.toml: [sessions.shop]: {says}")
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[sessions.none]\naccounts = 'env:A'", "[sessions.none]: no session can be called none"),
        ("[sessions.'a#b']\naccounts = 'env:A'", "[sessions.a#b]: a session's name has at most 32"),
        ("[sessions.accounts]\naccounts = 'env:A'", "[sessions.accounts]: this name is for"),
        ("[sessions]\nshop = 5", "[sessions.shop]: expected a table, got int"),
    ],
)
def test_names_that_no_group_can_have(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(f"shoal.toml: {says}")


@pytest.mark.parametrize("name", ["", "None", "my shop", "shop#alice", "@shop", "a" * 33])
def test_nor_these(name: str) -> None:
    with pytest.raises(ConfigError):
        check_group_name(name)


@pytest.mark.parametrize("name", ["alice", "a.b+c@shop.example", "7", "a" * 64])
def test_names_of_accounts(name: str) -> None:
    check_account_name(name)


@pytest.mark.parametrize("name", ["", "#", "a b", "a:b", f"{CANARY}!", "-a", "@a", "a" * 65, "a\n"])
def test_names_that_no_account_can_have_are_not_shown(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^the name of an account has at most 64") as raised:
        check_account_name(name)
    assert CANARY not in str(raised.value)


def test_accounts_are_those_of_the_crawls_session(tmp_path: Path) -> None:
    own = load(tmp_path, TABLES, options={"accounts": "mine.csv", "session": "shop#alice"})
    shop = own.session_groups["shop"]
    assert (shop.sources, shop.form) == (["file:mine.csv"], "form#login"), "the table stays"
    assert own.rules.sessions == ("club", "shop")
    new = load(tmp_path, "", options={"accounts": "env:MINE"}, spider={"session": "news"})
    assert new.session_groups == {"news": SessionConfig(accounts="env:MINE")}
    assert (new.rules.sessions, new.rules.session) == (("news",), "news")


def test_without_a_session_they_are_a_group_of_their_own(tmp_path: Path) -> None:
    settings = load(tmp_path, TABLES, options={"accounts": "my own.csv"})
    assert settings.rules.session == "accounts"
    assert settings.rules.sessions == ("accounts", "club", "shop")
    assert settings.session_groups["accounts"].sources == ["file:my own.csv"]


def test_who_goes_without_a_session_needs_none(tmp_path: Path) -> None:
    settings = load(tmp_path, 'accounts = "mine.csv"\n', options={"session": "none"})
    assert settings.session_groups == {}
    assert settings.rules.session == "none"


def test_a_session_that_no_group_can_be_called(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^session: a session's name has at most 32"):
        load(tmp_path, "", options={"accounts": "mine.csv", "session": "a b"})


def test_an_order_says_where_accounts_are_and_not_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "accounts.csv").write_text(f"user,password\nalice,{CANARY}\n")
    settings = load(tmp_path, TABLES, environ={"CLUB": CANARY})
    wire = msgspec.json.encode(WorkerOrder("shop", ["shop.py"], settings))
    assert CANARY.encode() not in wire
    assert msgspec.json.decode(wire, type=WorkerOrder).settings == settings
