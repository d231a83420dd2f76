"""Lists of proxies: what is in them, where they are, and that nothing of them is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from shoal.core.proxies import ProxyAddress
from shoal.errors import ConfigError
from shoal.exits import lists
from shoal.exits.lists import ListedProxy, read_list, read_source, shown
from support.fetching import fetching
from support.sites import Site

CANARY = "canary-4711"


def hosts(found: lists.ProxyList) -> list[str]:
    return [listed.proxy.host for listed in found.exits]


def test_lines_comments_countries_and_duplicates() -> None:
    found = read_list(
        "\ufeff# ours\n\na.example:80\r\nb.example:80:me:p#w  # theirs\n"
        "c.example:80 DE\nhttp://A.example:80\n  \n"
    )
    assert found.exits == [
        ListedProxy(ProxyAddress("http", "a.example", 80)),
        ListedProxy(ProxyAddress("http", "b.example", 80, "me", "p#w")),
        ListedProxy(ProxyAddress("http", "c.example", 80), "de"),
    ]
    assert not found.bad


def test_two_accounts_at_one_address_are_two() -> None:
    assert len(read_list("h.example:80:a:x\nh.example:80:b:x\nh.example:80:a:y\n").exits) == 3


def test_bad_lines_are_counted_and_not_quoted() -> None:
    found = read_list(
        f"a.example:80\nb.example:{CANARY}\nhttps://c.example:1\nd.example:80 {CANARY}"
    )
    assert hosts(found) == ["a.example"]
    assert found.bad == 3
    assert found.why.startswith("line 2: not a proxy")
    assert CANARY not in found.why


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MAX_EXITS", 2)
    with pytest.raises(ConfigError, match="more than 2 proxies"):
        read_list("a.example:1\na.example:2\na.example:3\n")


async def test_a_file_and_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "proxies.txt"
    file.write_text("a.example:80\nb.example:80\n")
    async with fetching() as fetcher:
        for source, environ, expected in (
            (f"file:{file}", {}, ["a.example", "b.example"]),
            ("env:PROXY_LIST", {"PROXY_LIST": str(file)}, ["a.example", "b.example"]),
            (
                "env:PROXY_LIST",
                {"PROXY_LIST": "c.example:80\nd.example:80"},
                ["c.example", "d.example"],
            ),
            (
                "env:PROXY_LIST",
                {"PROXY_LIST": "c.example:80, d.example:80"},
                ["c.example", "d.example"],
            ),
            ("env:PROXY_LIST", {"PROXY_LIST": "http://me:pw@c.example:80"}, ["c.example"]),
        ):
            assert hosts(await read_source(source, environ, fetcher)) == expected


async def test_what_cannot_be_read_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_LIST_BYTES", 10)
    (tmp_path / "large").write_text("a.example:80\n")
    async with fetching() as fetcher:
        for source, words in (
            (f"file:{tmp_path}/none", "none: No such file or directory"),
            (f"file:{tmp_path}", "Is a directory"),
            (f"file:{tmp_path}/large", "larger than "),
            ("file:a\0b", "not a path"),
            ("env:PROXY_LIST", "env:PROXY_LIST: the variable is not set"),
        ):
            with pytest.raises(ConfigError, match=words):
                await read_source(source, {}, fetcher)


async def test_a_list_at_an_address() -> None:
    async def answer(path: str) -> web.Response:
        status = 200 if path.startswith("/list") else 404
        return web.Response(text="a.example:80\n", status=status)

    async with Site(answer) as site, fetching() as fetcher:
        found = await read_source(f"{site.url}list?key={CANARY}", {}, fetcher)
        assert hosts(found) == ["a.example"]
        with pytest.raises(ConfigError) as raised:
            await read_source(f"{site.url}{CANARY}?key={CANARY}", {}, fetcher)
        assert str(raised.value) == "http://127.0.0.1/...: answered with HTTP 404"


async def test_a_list_is_not_read_from_a_private_address() -> None:
    async with fetching(allow_private=False) as fetcher:
        with pytest.raises(ConfigError, match="private address"):
            await read_source("http://127.0.0.1:1/list", {}, fetcher)


def test_an_address_is_shown_without_its_keys() -> None:
    assert (
        shown(f"https://me:{CANARY}@lists.example/{CANARY}?{CANARY}") == "https://lists.example/..."
    )
    assert shown("https://[broken") == "an address"
    assert shown("file:proxies.txt") == "file:proxies.txt"
