"""Reads lists of proxies from files, environment variables and URLs. Their size is bounded, and
errors never show their content."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from shoal.core.pool_config import MAX_EXITS
from shoal.core.proxies import ProxyAddress, parse_proxy
from shoal.core.task import Task
from shoal.errors import ConfigError, FetchError
from shoal.fetch.port import Fetcher, Request

MAX_LIST_BYTES = 16 * 1024 * 1024
"""Enough for the maximum number of exits in a pool, with long passwords."""
LIST_TIMEOUT_S = 30.0

_is_country = re.compile("[A-Za-z]{2}").fullmatch
_COMMENT = re.compile(r"(?:^|\s)#.*")


class ListedProxy(NamedTuple):
    """A proxy as a line of a list gives it."""

    proxy: ProxyAddress
    country: str = ""


class ProxyList(NamedTuple):
    """The content of a list."""

    exits: list[ListedProxy]
    """The proxies in the order of the list, without duplicates."""
    bad: int
    """The number of invalid lines."""
    why: str
    """What is wrong with the first invalid line. It shows nothing of the line itself."""


def read_list(text: str) -> ProxyList:
    """Parse a list: one proxy per line, optionally with its two-letter country; # begins a comment.

    Raises ConfigError if the text is not a list: an error page in its place must not empty a pool.
    """
    found: dict[ProxyAddress, ListedProxy] = {}
    bad, why = 0, ""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        try:
            listed = _listed(words)
        except ConfigError as error:
            bad += 1
            why = why or f"line {number}: {error}"
            continue
        found.setdefault(listed.proxy, listed)
        if len(found) > MAX_EXITS:
            raise ConfigError(f"more than {MAX_EXITS:,} proxies")
    if bad and not found:
        raise ConfigError(f"none of its lines is a proxy ({why})")
    return ProxyList(list(found.values()), bad, why)


def _listed(words: list[str]) -> ListedProxy:
    proxy = parse_proxy(words[0])
    if len(words) > 2 or (len(words) == 2 and not _is_country(words[1])):
        raise ConfigError("after a proxy only the two letters of a country may follow")
    return ListedProxy(proxy, words[1].lower() if len(words) == 2 else "")


def shown(source: str) -> str:
    """A source in a form that is safe to show: path and query of a URL often contain a key."""
    if source.startswith(("http://", "https://")):
        try:
            url = urlsplit(source)
            return f"{url.scheme}://{url.hostname}/..."
        except ValueError:
            return "an address"
    return source


async def read_source(source: str, environ: Mapping[str, str], fetcher: Fetcher) -> ProxyList:
    """Read one source of the option `from`. Raises ConfigError in one line, without secrets."""
    kind, _, rest = source.partition(":")
    try:
        if kind == "file":
            return await asyncio.to_thread(_of_file, rest)
        if kind == "env":
            return await asyncio.to_thread(_of_variable, rest, environ)
        return await _of_address(source, fetcher)
    except ConfigError as error:
        raise ConfigError(f"{shown(source)}: {error}") from None


def _of_file(path: str) -> ProxyList:
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_LIST_BYTES + 1)
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read") from None
    except ValueError:
        raise ConfigError("not a path") from None
    return _decoded(data)


def _of_variable(name: str, environ: Mapping[str, str]) -> ProxyList:
    """Read a variable: it contains a list, or the path of a file, such as a mounted secret. A text
    without a colon is not a proxy."""
    value = environ.get(name, "").strip()
    if not value:
        raise ConfigError("the variable is not set")
    if "\n" not in value and (value.startswith(("/", "./", "~/")) or ":" not in value):
        return _of_file(value)
    if "\n" not in value and os.path.exists(value):  # noqa: PTH110 - a path that Path may refuse
        return _of_file(value)
    return read_list(value.replace(",", "\n") if "\n" not in value else value)


async def _of_address(address: str, fetcher: Fetcher) -> ProxyList:
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            response = await fetcher.fetch(Request(Task(url=address)))
    except TimeoutError:
        raise ConfigError(f"no answer within {LIST_TIMEOUT_S:g} s") from None
    except FetchError as error:
        raise ConfigError(str(error)) from None
    if response.status != 200:
        raise ConfigError(f"answered with HTTP {response.status}")
    return _decoded(response.body)


def _decoded(data: bytes) -> ProxyList:
    if len(data) > MAX_LIST_BYTES:
        raise ConfigError(f"larger than {MAX_LIST_BYTES // 1024**2} MiB")
    return read_list(data.decode("utf-8", "replace"))
