"""The jar: which cookies are kept, and which request has them."""

from __future__ import annotations

import subprocess
import sys
from http.cookies import SimpleCookie

import msgspec
import pytest
from aiohttp import CookieJar
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from shoal.core.cookies import (
    EMPTY,
    MAX_IN_JAR,
    MAX_JAR_BYTES,
    MAX_PER_DOMAIN,
    Cookie,
    Jar,
    changes,
)

NOW = 1_800_000_000.0
SITE = "https://www.shop.example/a/page"


def after(*lines: str, url: str = SITE, jar: Jar = EMPTY, now: float = NOW) -> Jar:
    return jar.after(changes(jar, lines, url, now), now)


def sent(jar: Jar, url: str = SITE, now: float = NOW) -> str:
    return jar.header(url, now)


class TestWhoGetsIt:
    @pytest.mark.parametrize(
        ("url", "gets_it"),
        [
            (SITE, True),
            ("https://WWW.shop.example./a/", True),
            ("https://www.shop.example:8443/a/", True),
            ("http://www.shop.example/a/", True),
            ("https://shop.example/a/", False),
            ("https://x.www.shop.example/a/", False),
            ("https://www.shop.example.evil.example/a/", False),
        ],
    )
    def test_without_a_domain_only_its_host(self, url: str, gets_it: bool) -> None:
        assert sent(after("a=1"), url) == ("a=1" if gets_it else "")

    @pytest.mark.parametrize(
        ("url", "gets_it"),
        [
            (SITE, True),
            ("https://shop.example/a/", True),
            ("https://x.y.shop.example/a/", True),
            ("https://othershop.example/a/", False),
            ("https://example/a/", False),
        ],
    )
    def test_with_a_domain_all_hosts_of_it(self, url: str, gets_it: bool) -> None:
        assert sent(after("a=1; domain=.shop.example"), url) == ("a=1" if gets_it else "")

    @pytest.mark.parametrize(
        ("path", "asked", "gets_it"),
        [
            ("/", "/", True),
            ("/", "/x/y", True),
            ("/x", "/x", True),
            ("/x", "/x/y", True),
            ("/x", "/xy", False),
            ("/x/", "/x/y", True),
            ("/x/", "/x", False),
            ("/X", "/x", False),
            ("x", "/a/b", True),
            ("x", "/x", False),
        ],
    )
    def test_paths(self, path: str, asked: str, gets_it: bool) -> None:
        jar = after(f"a=1; path={path}")
        assert sent(jar, f"https://www.shop.example{asked}?q=/") == ("a=1" if gets_it else "")

    def test_secure_ones_only_under_encryption(self) -> None:
        jar = after("a=1; secure")
        assert sent(jar) == "a=1"
        assert sent(jar, "http://www.shop.example/a/") == ""

    def test_longer_paths_first_then_the_order_in_which_they_were_made(self) -> None:
        jar = after("a=1; path=/", "b=2; path=/a", "c=3; path=/", "d=4; path=/a")
        assert sent(after("a=9; path=/", jar=jar)) == "b=2; d=4; a=9; c=3"

    def test_until_it_expires(self) -> None:
        jar = after("a=1; max-age=10", "b=2")
        assert sent(jar, now=NOW + 9) == "a=1; b=2"
        assert sent(jar, now=NOW + 10) == "b=2"

    @pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
    def test_an_address_has_no_subdomains(self, host: str) -> None:
        url = f"http://{host}:8080/"
        assert sent(after("a=1", url=url), url) == "a=1"
        assert sent(after(f"a=1; domain={host}", url=url), url) == "a=1"
        assert not after("a=1; domain=0.0.1", url=url)


class TestWhatIsKept:
    @pytest.mark.parametrize(
        ("url", "domain"),
        [
            (SITE, "other.example"),
            (SITE, "x.www.shop.example"),
            (SITE, "example"),
            ("https://shop.co.uk/", "co.uk"),
            ("https://shop.co.uk/", "uk"),
            ("https://me.github.io/", "github.io"),
            ("https://me.example.xn--p1ai/", "xn--p1ai"),
            ("http://localhost/", "other"),
        ],
    )
    def test_not_of_a_domain_that_is_not_its_own(self, url: str, domain: str) -> None:
        assert not after(f"a=1; domain={domain}", url=url)

    @pytest.mark.parametrize("host", ["github.io", "localhost"])
    def test_a_public_suffix_has_its_own_for_itself(self, host: str) -> None:
        jar = after(f"a=1; domain={host}", url=f"https://{host}/")
        assert sent(jar, f"https://{host}/") == "a=1"
        assert sent(jar, f"https://me.{host}/") == ""

    @pytest.mark.parametrize(
        ("line", "is_kept"),
        [
            ("__Secure-a=1; secure", True),
            ("__Secure-a=1", False),
            ("__secure-a=1", False),
            ("__Host-a=1; secure; path=/", True),
            ("__Host-a=1; secure", False),
            ("__Host-a=1; path=/", False),
            ("__Host-a=1; secure; path=/; domain=www.shop.example", False),
            ("__HOST-a=1; secure; path=/x", False),
        ],
    )
    def test_prefixes_keep_what_they_promise(self, line: str, is_kept: bool) -> None:
        assert bool(after(line)) == is_kept
        assert not after(line, url="http://www.shop.example/")

    def test_what_came_in_the_clear_takes_no_secure_ones_place(self) -> None:
        jar = after("a=1; secure; path=/; domain=shop.example")
        assert after("a=2; path=/", "b=2; path=/", url="http://www.shop.example/", jar=jar) == (
            after("b=2; path=/", url="http://www.shop.example/", jar=jar)
        )

    def test_the_same_one_again_takes_its_place(self) -> None:
        jar = after("a=1", "a=2; httponly")
        assert sent(jar) == "a=2"
        assert len(jar.cookies) == 1
        assert len(after("a=3; path=/", "a=4; domain=www.shop.example", jar=jar).cookies) == 3

    @pytest.mark.parametrize("how", ["max-age=0", "expires=Thu, 01 Jan 1970 00:00:00 GMT"])
    def test_one_that_has_expired_deletes(self, how: str) -> None:
        jar = after("a=1", "b=2")
        assert sent(after(f"a=; {how}", jar=jar)) == "b=2"
        assert sent(after(f"a=; {how}; path=/", jar=jar)) == "a=1; b=2"

    def test_of_too_many_of_a_domain_the_oldest_go(self) -> None:
        jar = after(*(f"c{n}=1" for n in range(MAX_PER_DOMAIN + 5)))
        assert [cookie.name for cookie in jar.cookies][:2] == ["c5", "c6"]
        assert len(jar.cookies) == MAX_PER_DOMAIN

    def test_of_too_many_at_all_the_oldest_go(self) -> None:
        jar = EMPTY
        for n in range(MAX_IN_JAR + 5):
            jar = after("a=1", url=f"https://h{n}.example/", jar=jar)
        assert len(jar.cookies) == MAX_IN_JAR
        assert jar.cookies[0].domain == "h5.example"

    def test_of_too_large_ones_the_oldest_go(self) -> None:
        """Few enough, but more than any server takes, or is kept for each of many accounts."""
        jar, value = EMPTY, "x" * 4000
        for host in ("shop.example", "a.shop.example", "b.shop.example"):
            lines = [f"c{n}={value}" for n in range(MAX_PER_DOMAIN)]
            jar = after(*lines, "sid=1", url=f"https://{host}/", jar=jar)
        assert sum(cookie.size for cookie in jar.cookies) <= MAX_JAR_BYTES
        assert len(jar.cookies) > 10
        assert [cookie.name for cookie in jar.cookies][-2:] == ["c49", "sid"]


class TestTwoJars:
    def test_the_later_one_counts(self) -> None:
        old, new = after("a=1", "b=1"), after("a=2", "c=2", now=NOW + 1)
        assert sent(old.with_newer(new, NOW + 1)) == "a=2; b=1; c=2"
        assert sent(new.with_newer(old, NOW + 1)) == "a=2; c=2; b=1"

    def test_say_the_same_if_only_their_ends_differ(self) -> None:
        assert after("a=1; max-age=9").says_the_same(after("a=1", now=NOW + 5))
        assert not after("a=1").says_the_same(after("a=2"))
        assert not after("a=1").says_the_same(EMPTY)


def test_no_value_is_shown() -> None:
    jar = after("sid=canary; httponly")
    assert "canary" not in f"{jar!r} {jar} {jar.cookies!r} {jar.cookies[0]}"


def test_who_has_no_cookies_does_not_read_the_list_of_suffixes() -> None:
    code = """
import sys
import shoal.core.cookies as cookies, shoal.core.task, shoal.worker.visits.spider_visits
cookies.EMPTY.after(cookies.changes(cookies.EMPTY, ["a=1"], "https://x.example/", 0.0), 0.0)
sys.exit("publicsuffixlist" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


HOSTS = [
    "shop.example",
    "www.shop.example",
    "a.www.shop.example",
    "other.example",
    "myshop.example",
]
PATHS = ["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c"]
COOKIES = [
    *("a={}", "b={}", "c={}"),
    # To browsers, a cookie of one host and one of its domain are two. To aiohttp they are the same,
    # and the host's hides the domain's: so no name stands for both.
    *(f"{name}={{}}; Domain={host}" for name in ("d", "e") for host in HOSTS),
]
urls = st.builds(
    "{}://{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    st.sampled_from(PATHS),
)
lines = st.builds(
    "{}{}{}".format,
    st.builds(str.format, st.sampled_from(COOKIES), st.integers(0, 99)),
    st.sampled_from(["", *(f"; Path={path}" for path in PATHS)]),
    st.sampled_from(["", "; Max-Age=0", "; Max-Age=100"]),
)
answers = st.tuples(urls, st.lists(lines, max_size=4))


@given(st.lists(answers, max_size=6), urls)
async def test_sends_what_aiohttp_would(answered: list[tuple[str, list[str]]], asked: str) -> None:
    theirs, ours = CookieJar(), EMPTY
    for url, said in answered:
        ours = after(*said, url=url, jar=ours)
        for line in said:
            theirs.update_cookies(SimpleCookie(line), URL(url))
    # It keeps no two of one name in an answer, so only those are compared that it sends.
    pairs = {tuple(pair.split("=")) for pair in sent(ours, asked).split("; ") if pair}
    own = {(morsel.key, morsel.value) for morsel in theirs.filter_cookies(URL(asked)).values()}
    assert own <= pairs
    assert {name for name, _ in own} == {name for name, *_ in pairs}


@given(st.lists(answers, max_size=6))
def test_is_the_same_after_a_journey(answered: list[tuple[str, list[str]]]) -> None:
    jar = EMPTY
    for url, said in answered:
        jar = after(*said, url=url, jar=jar)
    assert msgspec.json.decode(msgspec.json.encode(jar), type=Jar) == jar
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(jar), type=Jar) == jar


@given(st.lists(answers, max_size=6))
def test_changes_may_be_made_later(answered: list[tuple[str, list[str]]]) -> None:
    jar, collected = EMPTY, list[Cookie]()
    for url, said in answered:
        collected += (changed := changes(jar, said, url, NOW))
        jar = jar.after(changed, NOW)
    assert EMPTY.after(collected, NOW).says_the_same(jar)


@given(st.lists(answers, max_size=6), urls)
def test_no_host_gets_what_another_set_for_itself(
    answered: list[tuple[str, list[str]]], asked: str
) -> None:
    jar = EMPTY
    for number, (url, said) in enumerate(answered):
        marked = [line.replace("=", f"={number}x", 1) for line in said]
        jar = after(*marked, url=url, jar=jar)
    for pair in sent(jar, asked).split("; "):
        if pair:
            setter = URL(answered[int(pair.split("=")[1].split("x")[0])][0]).host or ""
            assert ".".join(setter.split(".")[-2:]) == ".".join(
                (URL(asked).host or "").split(".")[-2:]
            )
