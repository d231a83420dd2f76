"""The [alerts] of shoal.toml: what they say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal import config
from shoal.alerts.config import AlertConfig, load_alerts
from shoal.alerts.limits import Limits
from shoal.alerts.routes import Command, Email, Slack, secret
from shoal.errors import ConfigError
from support.samples import sample


def load(folder: Path, text: str) -> AlertConfig:
    (folder / config.CONFIG_FILE).write_text(text, "utf-8")
    return load_alerts(folder)


def test_without_a_table_there_are_the_defaults(tmp_path: Path) -> None:
    alerts = load_alerts(tmp_path)
    assert (len(alerts), alerts.every_s, alerts.times.again) == (0, 60.0, "4h")
    assert alerts.limits_of(sample()) == Limits()


def test_a_crawls_limits_win_over_its_schedules_and_these_over_all(tmp_path: Path) -> None:
    alerts = load(
        tmp_path,
        """
        [alerts]
        failures = 0.3
        blocked = 0.3
        dead = 0.3
        [alerts.schedules.shop]
        blocked = 0.4
        dead = 0.4
        [alerts.crawls."shop@2026-11-15T03:00"]
        dead = 0.5
        """,
    )
    run = sample(crawl="shop@2026-11-15T03:00", schedule="shop")
    limits = alerts.limits_of(run)
    assert (limits.failures, limits.blocked, limits.dead) == (0.3, 0.4, 0.5)
    assert alerts.limits_of(sample(crawl="x")) == Limits(failures=0.3, blocked=0.3, dead=0.3)


def test_routes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK", "https://hooks.example/T0/secret")
    alerts = load(
        tmp_path,
        """
        [alerts.routes.ops]
        kind = "slack"
        url = "env:SLACK"
        [alerts.routes.mail]
        kind = "email"
        host = "mail.example"
        from = "shoal@example.com"
        to = ["ops@example.com"]
        [alerts.routes.pager]
        kind = "command"
        command = ["page", "--all"]
        """,
    )
    assert alerts.routes == {
        "ops": Slack(url="env:SLACK"),
        "mail": Email(host="mail.example", sender="shoal@example.com", to=["ops@example.com"]),
        "pager": Command(command=["page", "--all"]),
    }
    assert config.load(folder=tmp_path) == config.Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerts = 3", "[alerts]: expected a table, got int"),
        ("[alerts]\nfailurs = 0.3", "[alerts]: no key 'failurs'; did you mean failures?"),
        (
            "[alerts]\nfailures = 20",
            "[alerts]: failures must be a number, at least 0, at most 1",
        ),
        ("[alerts]\nfailures = nan", "[alerts]: failures must be a number"),
        ("[alerts]\nstalled = 'soon'", "[alerts]: stalled: not a time span: 'soon'"),
        ("[alerts]\nevery = 'x'", "[alerts]: every: not a time span"),
        ("[alerts]\nstalled = '3h'", "[alerts]: stalled: at most 2h, got '3h'"),
        (
            "[alerts.crawls.shop]\ngrowing = '1d'",
            "[alerts.crawls.shop]: growing: at most 2h, got '1d'",
        ),
        ("[alerts]\noff = ['stall']", "[alerts]: off: 'stall' is none of queue_grows, "),
        ("[alerts.crawls]\nshop = 1", "[alerts.crawls.shop]: expected a table, got int"),
        ("[alerts.crawls.shop]\ndead = 2", "[alerts.crawls.shop]: dead must be a number"),
        ("[alerts.schedules.shop]\nevery = '1m'", "[alerts.schedules.shop]: no key 'every'"),
        ("[alerts.routes.x]\nurl = 'https://x'", "[alerts.routes.x]: kind: write one of webhook,"),
        ("[alerts.routes.'a b']\nkind = 'slack'", "[alerts.routes.a b]: a route's name has"),
        (
            "[alerts.routes.x]\nkind = 'slack'\nurl = 'env:NOT_THERE'",
            "[alerts.routes.x]: url: the environment has no NOT_THERE",
        ),
        (
            "[alerts.routes.x]\nkind = 'slack'\nurl = 'file:/not/there'",
            "[alerts.routes.x]: url: cannot read /not/there",
        ),
        (
            "[alerts.routes.x]\nkind = 'slack'\nurl = 'hunter2'",
            "[alerts.routes.x]: url: not an address that begins with https://",
        ),
        (
            "[alerts.routes.x]\nkind = 'command'\ncommand = []",
            "[alerts.routes.x]: command: Expected `array` of length >= 1",
        ),
        (
            "[alerts.routes.x]\nkind = 'command'\ncommand = 'rm -rf /'",
            "[alerts.routes.x]: command: Expected `array`, got `str`",
        ),
        (
            "[alerts.routes.x]\nkind = 'email'\nhost = 'h'\nfrom = 'a@b'\nto = []",
            "[alerts.routes.x]: to: nobody is named",
        ),
        (
            "[alerts.routes.x]\nkind = 'email'\nhost = 'h'\nfrom = 'a@b'\nto = ['c']",
            "[alerts.routes.x]: not an address of a mailbox: 'c'",
        ),
        (
            "[alerts.routes.x]\nkind = 'email'\nhost = 'h'\nfrom = 'a@b'\nto = ['c@d']\nuser = 'u'",
            "[alerts.routes.x]: user and password: one of them is missing",
        ),
        (
            "[alerts.routes.x]\nkind = 'email'\nhost = 'h'\nfrom = 'a@b'\nto = ['c@d']\n"
            "user = 'u'\npassword = 'hunter2'\nsecurity = 'none'",
            "[alerts.routes.x]: security: a password is not sent in the open",
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_shows_no_secret(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert str(error.value).startswith(f"shoal.toml: {said}")
    assert "\n" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_secrets_are_found_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", " from-env \n")
    (tmp_path / "token").write_text("from-file\n")
    assert secret("env:TOKEN") == "from-env"
    assert secret(f"file:{tmp_path}/token") == "from-file"
    assert secret("https://itself") == "https://itself"
