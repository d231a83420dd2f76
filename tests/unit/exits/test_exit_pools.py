"""Pools: what a table means for the fleet, ids, and gateways."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shoal.core.pool_config import PoolConfig, read_tables
from shoal.core.proxies import parse_proxy
from shoal.errors import ConfigError
from shoal.exits.gateways import Gateway
from shoal.exits.ids import exit_id, session_id, session_text
from shoal.exits.pools import Pool, rules_of

CANARY = "canary-4711"
ENDPOINT = "http://customer-${USER_ID}-cc-{country}-sessid-{session}:${PASS}@gateway.example:7777"
ENVIRON = {"USER_ID": "u1", "PASS": "p@ss:w/rd%41"}


def table(**values: Any) -> PoolConfig:
    return read_tables({"dc": {"from": "file:x"}, "res": values})["res"]


def test_rules_are_what_the_table_says() -> None:
    rules = rules_of(
        "res",
        table(
            endpoint=ENDPOINT,
            countries=["de"],
            kind="residential",
            rate="5/s",
            rate_per_host="1/s",
            concurrency=3,
            escalate_to="dc",
            cost={"per_gb": 8.0, "per_request": 0.001},
            budget="20/day",
            pool_timeout="30m",
            rotation="best",
            allow_direct=True,
        ),
        1_000_000,
    )
    assert (rules.interval_s, rules.pair_interval_s) == pytest.approx((0.22, 1.1))
    assert (rules.name, rules.rotation, rules.concurrency) == ("res", "best", 3)
    assert (rules.sticky_s, rules.timeout_s) == (600.0, 1800.0)
    assert (rules.escalate_to, rules.allow_direct, rules.is_gateway) == ("dc", True, True)
    assert (rules.per_gb, rules.per_request) == (8.0, 0.001)
    assert (rules.budget, rules.budget_period_s) == (20.0, 86_400.0)
    assert rules.most_bytes > 1_000_000, "the answer's head, and the request, cost as well"


def test_a_budget_that_not_one_request_fits_into_is_a_mistake() -> None:
    small = table(endpoint="http://h:1", cost={"per_gb": 8.0}, budget="0.01/day")
    with pytest.raises(ConfigError, match=r"^\[proxies.res\]: budget: 0.01/day is less than one"):
        Pool("res", small, 8_000_000, {})


def test_sticky_says_more_than_the_kind() -> None:
    endpoint = {"endpoint": "http://h:1"}
    assert table(kind="residential", **endpoint).sticky_s == 600
    assert table(kind="residential", sticky="none", **endpoint).sticky_s == 0
    assert table(kind="datacenter", **endpoint).sticky_s == 0
    assert table(kind="datacenter", sticky="90s", **endpoint).sticky_s == 90


def test_an_id_is_of_the_whole_address_and_shows_nothing_of_it() -> None:
    texts = [
        "h.example:80",
        "h.example:81",
        "socks5://h.example:80",
        f"h.example:80:{CANARY}:a",
        f"h.example:80:{CANARY}:b",
        f"h.example:80:{CANARY}a:",
    ]
    ids = {exit_id("dc", parse_proxy(text)) for text in texts}
    assert len(ids) == len(texts)
    assert all(re.fullmatch("dc-[0-9a-f]{10}", each) for each in ids)
    assert exit_id("dc", parse_proxy("h.example:80")) == "dc-073e610923", "the same everywhere"
    assert exit_id("dc", parse_proxy("H.EXAMPLE:80")) == "dc-073e610923"


def test_sessions_are_short_words_and_new_after_a_block() -> None:
    at = session_id("res", "x", "de", 3)
    words = {session_text(at, number) for number in range(1000)}
    assert len(words) == 1000
    assert all(re.fullmatch("[a-z0-9]{8,12}", word) for word in words)
    assert session_text(at, 7) == session_text(at, 7)


def test_a_gateway_is_filled_in_whatever_its_variables_hold() -> None:
    at = Gateway(ENDPOINT, ENVIRON).address("de", "abc123")
    assert (at.user, at.password) == ("customer-u1-cc-de-sessid-abc123", "p@ss:w/rd%41")
    assert (at.scheme, at.host, at.port) == ("http", "gateway.example", 7777)
    whole = Gateway("${GATEWAY}", {"GATEWAY": "socks5://u-{session}:p%40@gw.example:1"})
    assert whole.address("", "s").password == "p@"
    assert whole.has_sessions
    both = Gateway("http://${LOGIN}@${HOST}:1", {"LOGIN": "u:p:w", "HOST": "gw.example"})
    assert (both.address("", "").user, both.address("", "").password) == ("u", "p:w")
    assert not both.has_sessions


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("http://${NONE}:x@h:1", "endpoint: the variable NONE is not set"),
        ("http://u-{sesion}:x@h:1", "endpoint: only {country} and {session} can be filled in"),
        ("https://u:x@h:1", "endpoint: proxies by https:// are not supported"),
        (f"http://u:{CANARY}@h", "endpoint: not a proxy: its port is missing"),
        ("${WHOLE}", "endpoint: write http://user:password@host:port or socks5://..."),
    ],
)
def test_a_wrong_endpoint(endpoint: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Gateway(endpoint, {"WHOLE": CANARY})
    assert str(raised.value).startswith(expected)
    assert CANARY not in str(raised.value)


def test_a_gateways_exits_are_in_all_countries_by_turns() -> None:
    pool = Pool("res", table(endpoint=ENDPOINT, countries=["DE", "fr"], exits=4), 1, ENVIRON)
    assert [entry.country for entry in pool.entries] == ["de", "fr", "de", "fr"]
    assert len({entry.id for entry in pool.entries}) == 4
    first = pool.entries[0].id
    route = pool.route(first, 0)
    assert route is not None
    assert route.proxy is not None
    assert route.name == f"{first}/0"
    assert route.keeps_connections
    assert pool.route(first, 0) is route, "one object for each: connections are kept by it"
    other = pool.route(first, 1)
    assert other is not None
    assert other.proxy != route.proxy
    again = Pool("res", table(endpoint=ENDPOINT, countries=["DE", "fr"], exits=4), 1, ENVIRON)
    assert again.route(first, 1) == other, "all workers leave from the one address"


def test_without_sessions_no_connection_is_kept() -> None:
    pool = Pool("res", table(endpoint="http://u:p@h:1"), 1, {})
    (entry,) = pool.entries
    route = pool.route(entry.id, 0)
    assert route is not None
    assert not route.keeps_connections
