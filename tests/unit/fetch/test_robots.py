"""robots.txt: what is made of the answer, and what it then allows."""

from __future__ import annotations

import random

import pytest
from multidict import CIMultiDict

from shoal.core.records import Robots
from shoal.errors import FetchError
from shoal.fetch import robots as module
from shoal.fetch.port import Response
from shoal.fetch.robots import RobotsGate, next_hop, robots_url

DAY_S = 24 * 3600


@pytest.fixture
def gate() -> RobotsGate:
    return RobotsGate("Shoal/1.0 (web crawler)")


def answer(body: str | bytes = b"", status: int = 200, **headers: str) -> Response:
    raw = body.encode() if isinstance(body, str) else body
    url = "https://shop.example/robots.txt"
    return Response(url, status, CIMultiDict(headers), raw, 0.1)


def allows(gate: RobotsGate, text: str | bytes, path: str) -> bool:
    robots = gate.read(answer(text))
    return gate.allows("shop.example", random.random(), robots, f"https://shop.example{path}")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://shop.example/a/b?c#d", "https://shop.example/robots.txt"),
        ("HTTP://user:pw@Shop.Example:80/", "http://shop.example/robots.txt"),
        ("http://shop.example:8080", "http://shop.example:8080/robots.txt"),
        ("http://[::1]:81/x", "http://[::1]:81/robots.txt"),
    ],
)
def test_robots_url(url: str, expected: str) -> None:
    assert robots_url(url) == expected


def test_found(gate: RobotsGate) -> None:
    robots = gate.read(answer("User-agent: *\nDisallow: /private\n"))
    assert robots == Robots("User-agent: *\nDisallow: /private\n", DAY_S)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451, 301, 304])
def test_without_one_all_is_allowed(gate: RobotsGate, status: int) -> None:
    assert gate.read(answer("User-agent: *\nDisallow: /", status)) == Robots("", DAY_S)


@pytest.mark.parametrize("status", [101, 429, 500, 503, 599])
def test_while_the_server_is_in_trouble_nothing_is_allowed(gate: RobotsGate, status: int) -> None:
    robots = gate.read(answer("", status))
    assert robots == Robots("", 60, error=f"robots.txt: HTTP {status}")
    assert not gate.allows("shop.example", 1.0, robots, "https://shop.example/")


def test_nor_while_it_cannot_be_reached(gate: RobotsGate) -> None:
    robots = gate.read(FetchError("connection refused"))
    assert robots == Robots("", 60, error="robots.txt: connection refused")
    assert not gate.allows("shop.example", 1.0, robots, "https://shop.example/")


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: *\nDisallow: /a", "/b", True),
        ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
        ("User-agent: *\nDisallow: /\nAllow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /a?b=", "/a?b=1", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        # our own group goes before the one for all, whatever their order
        ("User-agent: shoal\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: SHOAL/2.0 # us\nAllow: /", "/a", True),
        ("User-agent: *\nAllow: /\n\nUser-agent: shoal\nDisallow: /a", "/a", False),
        ("User-agent: other\nUser-agent: shoal\nDisallow: /a", "/a", False),
        ("useragent shoal\nDisallow: /a", "/a", False),
        # other agents are not us, even if their name is part of ours, or ours of theirs
        ("User-agent: other\nDisallow: /", "/a", True),
        ("User-agent: sho\nDisallow: /", "/a", True),
        ("User-agent: shoalbot\nDisallow: /", "/a", True),
        ("User-agent: sho*\nDisallow: /", "/a", True),
        ("User-agent:\nDisallow: /", "/a", True),
    ],
)
def test_rules(gate: RobotsGate, text: str, path: str, expected: bool) -> None:
    assert allows(gate, text, path) is expected


@pytest.mark.parametrize(
    "url", ["https://shop.example\\private/x", "https://shop.example/a/../private/x"]
)
def test_the_address_is_read_as_it_is_sent(gate: RobotsGate, url: str) -> None:
    robots = gate.read(answer("User-agent: *\nDisallow: /private"))
    assert not gate.allows("shop.example", 1.0, robots, url)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Crawl-delay: 2.5", 2.5),
        ("Crawl-delay: 100000", 300),
        ("Request-rate: 2/1m", 30),
        ("Request-rate: 1/10s 0900-1700", 10),
        ("Crawl-delay: 3\nRequest-rate: 1/60", 3),
        ("Request-rate: 1/" + "9" * 4000, 300),
        ("Request-rate: " + "9" * 4000 + "/1", 0),
        ("Crawl-delay: soon", 0),
        ("Crawl-delay: -5", 0),
        ("Crawl-delay: nan", 0),
        ("Crawl-delay: 1e999", 0),
        ("Request-rate: 0/0", 0),
        ("Request-rate: often", 0),
        ("User-agent: slowbot\nCrawl-delay: 9", 0),
    ],
)
def test_crawl_delay(gate: RobotsGate, lines: str, expected: float) -> None:
    assert gate.read(answer(f"User-agent: *\nAllow: /\n{lines}")).crawl_delay_s == expected


def test_our_own_crawl_delay(gate: RobotsGate) -> None:
    text = "User-agent: *\nCrawl-delay: 9\n\nUser-agent: shoal\nCrawl-delay: 1"
    assert gate.read(answer(text)).crawl_delay_s == 1


def test_binary_garbage(gate: RobotsGate) -> None:
    assert allows(gate, random.Random(1).randbytes(100_000), "/")
    assert allows(gate, bytes(10_000_000), "/")


def test_ten_megabytes_are_cut_at_a_whole_line(gate: RobotsGate) -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /{n}\n" for n in range(1_000_000))
    robots = gate.read(answer(text))
    assert 510_000 < len(robots.text) <= module.MAX_BYTES
    assert text.startswith(robots.text)
    assert robots.text.endswith("\n")
    assert not gate.allows("shop.example", 1.0, robots, "https://shop.example/7")


@pytest.mark.parametrize(
    "spelling", ["User-agent: {}", "useragent {}", "USER AGENT:{}", "user \t agent {}"]
)
def test_thousands_of_agents_do_not_multiply_the_rules(gate: RobotsGate, spelling: str) -> None:
    """Protego alone would make a rule for each pair of them: a hundred million."""
    agents = "\n".join(spelling.format(f"bot{n}") for n in range(10_000))
    text = f"{agents}\n" + "Disallow: /a\n" * 10_000
    assert allows(gate, text, "/a")


def test_remembers_a_version_of_a_host(gate: RobotsGate) -> None:
    url = "https://shop.example/a"
    assert gate.recall("shop.example", 1.0, url) is None
    assert not gate.allows("shop.example", 1.0, Robots("User-agent: *\nDisallow: /a", DAY_S), url)
    assert gate.recall("shop.example", 1.0, url) is False
    assert gate.recall("shop.example", 1.0, url + "/..") is True
    assert gate.recall("shop.example", 2.0, url) is None
    assert gate.recall("other.example", 1.0, url) is None
    assert gate.allows("shop.example", 2.0, Robots("", DAY_S), url)


def test_remembers_only_so_much(gate: RobotsGate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_CHARACTERS", 2500)
    for host in ("a", "b"):
        gate.allows(host, 1.0, Robots("", DAY_S), "https://x.example/")
    gate.recall("a", 1.0, "https://x.example/")
    gate.allows("c", 1.0, Robots("", DAY_S), "https://x.example/")
    kept = [host for host in "abc" if gate.recall(host, 1.0, "https://x.example/") is not None]
    assert kept == ["a", "c"]
    gate.allows("huge", 1.0, Robots("#" * 10_000, DAY_S), "https://x.example/")
    kept = [host for host in ("a", "c", "huge") if gate.recall(host, 1.0, "https://x.example/")]
    assert kept == ["huge"]


@pytest.mark.parametrize(
    ("status", "location", "expected"),
    [
        (301, "/elsewhere.txt", "https://shop.example/elsewhere.txt"),
        (302, "//www.shop.example/robots.txt", "https://www.shop.example/robots.txt"),
        (308, "http://other.example:81/r", "http://other.example:81/r"),
        (200, "/elsewhere.txt", None),
        (304, "/elsewhere.txt", None),
        (301, "mailto:us", None),
        (301, "http://[nonsense", None),
        (301, "http://shop.example/\udcff", None),
    ],
)
def test_next_hop(status: int, location: str, expected: str | None) -> None:
    assert next_hop(answer(status=status, Location=location)) == expected


def test_no_next_hop_without_location() -> None:
    assert next_hop(answer(status=301)) is None
