"""[proxies.NAME] tables: what they may say, how mistakes are told, and what --proxies means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal import config
from shoal.config import Settings
from shoal.core.pool_config import parse_budget
from shoal.errors import ConfigError

CANARY = "canary-4711"
TABLES = """
[proxies.dc]
from = ["file:proxies.txt", "env:PROXY_LIST", "https://lists.example/dc"]
refresh = "10m"
rotation = "rested"
rate = "5/s"
rate_per_host = "1/s"
concurrency = 8
escalate_to = "res"

[proxies.res]
endpoint = "http://customer-${USER_ID}-cc-{country}-sessid-{session}:${PASS}@gateway.example:7777"
exits = 200
kind = "residential"
countries = ["de"]
cost = { per_gb = 8.0 }
budget = "20/day"
"""


def load(folder: Path, text: str = "", **sources: Any) -> Settings:
    (folder / "shoal.toml").write_text(text, "utf-8")
    return config.load(folder=folder, **sources)


def test_tables_are_pools_and_their_names_are_for_tasks(tmp_path: Path) -> None:
    settings = load(tmp_path, TABLES)
    assert list(settings.proxy_pools) == ["dc", "res"]
    assert settings.rules.pools == ("dc", "res")
    assert settings.rules.proxy_pool is None, "no task uses a pool unless somebody says so"
    assert settings.proxy_pools["res"].sticky_s == 600
    assert settings.proxy_pools["dc"].sticky_s == 0


def test_a_crawl_may_be_kept_to_some_of_them(tmp_path: Path) -> None:
    assert load(tmp_path, TABLES, options={"pools": "dc"}).rules.pools == ("dc",)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", "give it a list (from) or a gateway (endpoint), one of both"),
        ("from = 'x.txt'", "from: write file:PATH, env:NAME or https://..."),
        ("from = 5", "from: Expected `str | array`, got `int`"),
        ("from = 'file:x'\nendpoint = 'http://h:1'", "give it a list (from) or a gateway"),
        ("from = 'file:x'\nexits = 5", "exits: only a gateway"),
        ("from = 'file:x'\nrat = '5/s'", "no key 'rat'; did you mean rate?"),
        ("from = 'file:x'\nrate = 'auto'", "rate: auto is for hosts"),
        ("from = 'file:x'\nrate_per_host = '5'", "rate_per_host: not a rate: '5'"),
        ("from = 'file:x'\nconcurrency = 0", "concurrency must be a whole number, at least 1"),
        ("from = 'file:x'\nrotation = 'any'", "rotation: 'any' is none of rested, random, best"),
        ("from = 'file:x'\nkind = 'mobile'", "kind: 'mobile' is none of datacenter, residential"),
        ("from = 'file:x'\nsticky = 'long'", "sticky: not a time span: 'long'"),
        ("from = 'file:x'\nrefresh = '5'", "refresh: not a time span: '5'"),
        ("from = 'file:x'\npool_timeout = '0s'", "pool_timeout: not a time span"),
        ("from = 'file:x'\nescalate_to = 'res'", "escalate_to: no pool 'res' (there are: dc)"),
        ("from = 'file:x'\nescalate_to = 'dc'", "escalate_to: a pool cannot follow itself"),
        ("from = 'file:x'\ncountries = ['Germany']", "countries: not two letters: 'Germany'"),
        ("from = 'file:x'\nbudget = '20/day'", "budget: needs a cost"),
        ("from = 'file:x'\nbudget = '20'\ncost = {per_gb = 1}", "budget: not a budget: '20'"),
        ("from = 'file:x'\ncost = {per_mb = 1}", "cost: no key 'per_mb'"),
        ("from = 'file:x'\ntunnel = 'never'", "tunnel: 'never' is none of https, always"),
        ("endpoint = 'http://u-{country}@h:1'", "endpoint: {country} needs countries"),
        (f"endpoint = 'me:{CANARY}@h:1'", "endpoint: write http://user:password@host:port"),
        (f"from = 'me:{CANARY}@h:1'", "from: write file:PATH"),
    ],
)
def test_a_mistake_is_named_with_its_table_and_key(
    lines: str, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, f"[proxies.dc]\n{lines}\n")
    said = str(raised.value)
    assert said.startswith(f"shoal.toml: [proxies.dc]: {expected}")
    assert CANARY not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[proxies.direct]\nfrom = 'file:x'", "[proxies.direct]: no pool can be called direct"),
        ("[proxies.proxies]\nfrom = 'file:x'", "[proxies.proxies]: this name is for --proxies"),
        ("[proxies.'a b']\nfrom = 'file:x'", "[proxies.a b]: a pool's name has at most 32"),
        ("[proxies]\ndc = 5", "[proxies.dc]: expected a table, got int"),
    ],
)
def test_a_wrong_table(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(f"shoal.toml: {expected}")


def test_proxies_names_a_pool_or_a_file(tmp_path: Path) -> None:
    pool = load(tmp_path, TABLES, options={"proxies": "res"})
    assert pool.rules.proxy_pool == "res"
    assert pool.rules.pools == ("dc", "res")
    file = load(tmp_path, TABLES, options={"proxies": "mine.txt"})
    assert file.rules.proxy_pool == "proxies"
    assert file.rules.pools == ("dc", "proxies", "res")
    assert file.proxy_pools["proxies"].sources == ["file:mine.txt"]
    secret = load(tmp_path, environ={"SHOAL_PROXIES": "env:PROXY_LIST"})
    assert secret.proxy_pools["proxies"].sources == ["env:PROXY_LIST"]
    in_file = load(tmp_path, 'proxies = "mine.txt"\n')
    assert in_file.rules.proxy_pool == "proxies"


def test_the_last_who_names_a_pool_is_heard(tmp_path: Path) -> None:
    spider = {"proxy_pool": "dc"}
    assert load(tmp_path, TABLES, spider=spider).rules.proxy_pool == "dc"
    chosen = load(tmp_path, TABLES, spider=spider, environ={"SHOAL_PROXIES": "res"})
    assert chosen.rules.proxy_pool == "res"
    environ, options = {"SHOAL_PROXIES": "mine.txt"}, {"proxy_pool": "direct"}
    over = load(tmp_path, TABLES, spider=spider, environ=environ, options=options)
    assert over.rules.proxy_pool == "direct"
    assert "proxies" in over.rules.pools


def test_budgets() -> None:
    assert parse_budget("20/day") == (20.0, 86_400.0)
    assert parse_budget(" 1.50 / hour ") == (1.5, 3600.0)
    assert parse_budget("300/month") == (300.0, 30 * 86_400.0)
    for text in ("20", "0/day", "-1/day", "20/week", "20/d"):
        with pytest.raises(ConfigError, match="not a budget"):
            parse_budget(text)


def test_a_crawl_without_pools_has_none(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
