"""Checks exits before a crawl: whether they accept the login, what they reveal about this machine,
and whether they change answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from ipaddress import ip_address

import msgspec

from shoal.core.exits import Blame, ExitEntry
from shoal.core.proxies import ProxyAddress
from shoal.core.task import Task
from shoal.errors import ExitFault, FetchError
from shoal.exits.echo import Echo, read_echo
from shoal.exits.pools import Pool
from shoal.fetch.port import DIRECT, Fetcher, Request, Route

PASSES_ON = "passes our address on"
SAYS_SO = "says it is a proxy"
HIDES = "hides us"

GOOD = "good"
_WRONG_CERTIFICATE = "certificate verify failed"
_TELLING = ("via", "x-forwarded-for", "forwarded", "x-real-ip", "client-ip", "x-tinyproxy")
"""Headers that proxies add to requests."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking an exit."""

    exit: str
    address: str
    """The address of the proxy, without its login."""
    kind: str = ""
    country: str = ""
    """The country, if the table or the list names it."""
    seen: str = ""
    """The address that its requests come from."""
    latency_ms: int | None = None
    """The time of the whole request, including the connection."""
    anonymity: str = ""
    """What the exit reveals. Empty if the echo does not report headers."""
    tls: str = ""
    """`untouched` or `forged`. Empty if the echo does not use https."""
    verdict: str = GOOD

    @property
    def is_good(self) -> bool:
        """Whether the exit works and reveals nothing about this machine."""
        return self.verdict == GOOD


def is_local(proxy: ProxyAddress) -> bool:
    """Whether a proxy is on this machine, so that it can reach an echo on this machine."""
    try:
        return ip_address(proxy.host).is_loopback
    except ValueError:
        return proxy.host == "localhost"


def routes_of(pool: Pool, limit: int | None) -> list[tuple[ExitEntry, Route]]:
    """The exits of a pool to check, with their routes."""
    found = ((entry, pool.route(entry.id, 0)) for entry in pool.entries[:limit])
    return [(entry, route) for entry, route in found if route is not None]


async def own_address(fetcher: Fetcher, echo: str) -> str | None:
    """The address of this machine as the echo sees it.

    Empty if the echo cannot be reached without an exit. None if it is not an echo.
    """
    try:
        response = await fetcher.fetch(Request(Task(url=echo), route=DIRECT))
    except FetchError:
        return ""
    answer = read_echo(response.body)
    return answer.address if answer is not None else None


async def check_all(
    fetcher: Fetcher,
    exits: Sequence[tuple[ExitEntry, Route]],
    echo: str,
    own: str,
    concurrency: int,
    progress: Callable[[int], object],
) -> list[Checked]:
    """Check all exits, at most `concurrency` at a time. Results are in the order of the exits."""
    slots = asyncio.Semaphore(concurrency)
    done = 0

    async def check(entry: ExitEntry, route: Route) -> Checked:
        nonlocal done
        async with slots:
            checked = await check_one(fetcher, entry, route, echo, own)
        done += 1
        progress(done)
        return checked

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check(entry, route)) for entry, route in exits]
    return [task.result() for task in tasks]


async def check_one(
    fetcher: Fetcher, entry: ExitEntry, route: Route, echo: str, own: str
) -> Checked:
    """Check an exit by sending one request to the echo through it."""
    known = Checked(exit=entry.id, address=str(route.proxy), kind=entry.kind, country=entry.country)
    is_tls = echo.lower().startswith("https:")
    try:
        response = await fetcher.fetch(Request(Task(url=echo), route=route))
    except FetchError as error:
        forged = is_tls and _is_forged(error, own)
        return _replace(known, verdict=str(error), tls="forged" if forged else "")
    known = _replace(
        known, latency_ms=round(response.duration_s * 1000), tls="untouched" if is_tls else ""
    )
    if response.status != 200:
        return _replace(known, verdict=f"answered with HTTP {response.status}")
    answer = read_echo(response.body)
    if answer is None:
        return _replace(known, verdict="answered in place of the echo")
    return _judged(known, answer, own, is_proxy=_is_proxy(route))


def _is_forged(error: FetchError, own: str) -> bool:
    """Whether the certificate was forged. If the echo was reached directly (`own`), its certificate
    is valid, however many exits show another one."""
    if isinstance(error, ExitFault) and error.blame == Blame.FORGED:
        return True
    return bool(own) and _WRONG_CERTIFICATE in str(error)


def _is_proxy(route: Route) -> bool:
    return route.proxy is not None and route.proxy.scheme != "bind"


def _judged(known: Checked, answer: Echo, own: str, *, is_proxy: bool) -> Checked:
    anonymity = _anonymity(answer, own) if is_proxy else ""
    verdict = PASSES_ON if anonymity == PASSES_ON else GOOD
    if answer.headers is not None and "proxy-authorization" in answer.headers:
        verdict = "passes our login on"
    return _replace(known, seen=answer.address, anonymity=anonymity, verdict=verdict)


def _anonymity(answer: Echo, own: str) -> str:
    if answer.headers is None:
        return ""
    added = {name: value for name, value in answer.headers.items() if name in _TELLING}
    if own and own != answer.address and any(own in value for value in added.values()):
        return PASSES_ON
    return SAYS_SO if added else HIDES


def _replace(checked: Checked, **changes: object) -> Checked:
    return msgspec.structs.replace(checked, **changes)
