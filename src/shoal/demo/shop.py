"""A local shop to crawl: deterministic, on several hosts, and as messy as real ones.

    python -m shoal.demo.shop --hosts 4 --products 300

Every host is another port of 127.0.0.1. The arguments alone determine what is served, so a test can
ask the shop what a correct crawl must find.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
from aiohttp import web

from shoal.demo import BROKEN, FLAKY, GONE, Pages, Ware, WareKind, listing_path, make_ware

HOST = "127.0.0.1"
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /cart\n"
CLOSED = 0
"""The status in the log of a request whose connection was closed without an answer."""

SEED = 1
"""The seed from which products are made, along with their host and number."""

_NUMBER = re.compile(r"[0-9]{1,9}")
_PRODUCT_PATH = re.compile(r"/(p|product)/([0-9]{1,9})")

_PHOTO_PATH = re.compile(r"/photo/([0-9]{1,9})\.svg")


class Hit(msgspec.Struct):
    """A request that reached the shop."""

    monotonic: float
    """`time.monotonic()` at arrival; all processes of a machine share this clock."""
    time: float
    """The wall clock at arrival."""
    host: int
    """The port."""
    method: str
    path: str
    """The path as it was sent, with its query."""
    page: str
    """The page requested, however its URL was spelled: equal for two requests for one page."""
    status: int


class Serving(msgspec.Struct, frozen=True):
    """How a shop is served, independent of what it sells."""

    first_port: int = 0
    """0 takes free ports."""
    latency_s: float = 0.0
    """How long each answer takes."""
    log_file: Path | None = None
    """A file to which each hit is written at once, as a line of JSON."""


QUICKLY = Serving()


class Shop:
    """The shop, open while its context is. Its arguments determine everything that it sells."""

    def __init__(
        self,
        *,
        hosts: int = 4,
        products: int = 300,
        messy: bool = True,
        crawl_delay_s: float | None = None,
        serving: Serving = QUICKLY,
    ) -> None:
        self._wares = [
            [make_ware(host, number, SEED) for number in range(1, products + 1)]
            for host in range(hosts)
        ]
        self._messy = messy
        self._robots = ROBOTS + (f"Crawl-delay: {crawl_delay_s}\n" if crawl_delay_s else "")
        self._serving = serving
        self._keep: Callable[[bytes], object] = lambda line: None
        self._failed_once: set[Ware] = set()
        self._pages: list[Pages] = []
        self._closing = AsyncExitStack()
        self.ports: list[int] = []
        """The port of each host, known once the shop is open."""
        self.log: list[Hit] = []
        """All requests, in the order in which they were answered."""

    async def __aenter__(self) -> Shop:
        async with AsyncExitStack() as stack:
            if log_file := self._serving.log_file:
                self._keep = stack.enter_context(log_file.open("ab", buffering=0)).write
            # All ports must be known before the first answer, since pages link to other hosts.
            sockets = [
                stack.enter_context(socket.create_server((HOST, self._wanted_port(host))))
                for host in range(len(self._wares))
            ]
            self.ports = [bound.getsockname()[1] for bound in sockets]
            origins = [self._origin(host) for host in range(len(sockets))]
            for host, bound in enumerate(sockets):
                self._pages.append(Pages(host, self._wares, origins, messy=self._messy))
                await self._serve(stack, host, bound)
            self._closing = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    def _wanted_port(self, host: int) -> int:
        first = self._serving.first_port
        return first + host if first else 0

    # What a crawl of the shop must find

    @property
    def urls(self) -> list[str]:
        """The URLs to start at, one per host."""
        return [self._origin(host) + listing_path(None, 1) for host in range(len(self.ports))]

    def good(self) -> dict[str, str]:
        """SKU and URL of every product that can be scraped in the end, flaky and moved ones too."""
        return self._chosen(lambda kind: kind not in GONE and kind not in BROKEN)

    def flaky(self) -> dict[str, str]:
        """SKU and URL of the products whose first request fails."""
        return self._chosen(FLAKY.__contains__)

    def gone(self) -> dict[str, str]:
        """SKU and URL of the products that answer 404 or 410."""
        return self._chosen(GONE.__contains__)

    def broken(self) -> dict[str, str]:
        """SKU and URL of the products whose page has no numeric price."""
        return self._chosen(BROKEN.__contains__)

    def moved(self) -> dict[str, str]:
        """SKU and old URL, which redirects, of the products that have moved."""
        return {
            ware.sku: self._origin(ware.host) + ware.old_path
            for ware in self._all()
            if ware.kind is WareKind.MOVED
        }

    def expected_items(self) -> dict[str, dict[str, str | float]]:
        """Exactly the items that must be stored: SKU to title and price."""
        good = self.good()
        return {
            ware.sku: {"title": ware.title, "price": ware.price}
            for ware in self._all()
            if ware.sku in good
        }

    def _all(self) -> list[Ware]:
        return [ware for wares in self._wares for ware in wares]

    def _chosen(self, wanted: Callable[[WareKind], bool]) -> dict[str, str]:
        return {
            ware.sku: self._origin(ware.host) + ware.path
            for ware in self._all()
            if wanted(ware.kind)
        }

    def _origin(self, host: int) -> str:
        return f"http://{HOST}:{self.ports[host]}"

    # Serving

    async def _serve(self, stack: AsyncExitStack, host: int, bound: socket.socket) -> None:
        # Answers are short: one that is not sent after a second belongs to a client that hangs.
        runner = web.ServerRunner(web.Server(partial(self._answer, host)), shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, bound).start()

    async def _answer(self, host: int, request: web.BaseRequest) -> web.Response:
        arrived, arrived_at = time.monotonic(), time.time()
        await asyncio.sleep(self._serving.latency_s)
        response = self._response(host, request)
        if response is None and request.transport:
            request.transport.abort()
        hit = Hit(
            monotonic=arrived,
            time=arrived_at,
            host=self.ports[host],
            method=request.method,
            path=request.raw_path,
            page=_meaning(request),
            status=response.status if response else CLOSED,
        )
        self.log.append(hit)
        self._keep(msgspec.json.encode(hit) + b"\n")
        return response or web.Response()

    def _response(self, host: int, request: web.BaseRequest) -> web.Response | None:
        """The answer, or None to close the connection."""
        pages, path = self._pages[host], request.path
        product = _PRODUCT_PATH.fullmatch(path)
        if product:
            return self._product(host, product[1], int(product[2]))
        photo = _PHOTO_PATH.fullmatch(path)
        if photo:
            return self._photo(host, int(photo[1]))
        if path == "/robots.txt":
            return web.Response(text=self._robots)
        if path == "/":
            return _html(pages.home())
        if path == "/catalog":
            return self._listing(host, request.query)
        if path == "/cart" or path.startswith("/private/"):
            return _html(pages.note("Not for robots"))
        return self._missing(host)

    def _listing(self, host: int, query: Mapping[str, str]) -> web.Response:
        number = query.get("page", "1")
        if not _NUMBER.fullmatch(number):
            return self._missing(host)
        listing = self._pages[host].listing(query.get("category"), int(number))
        return _html(listing) if listing else self._missing(host)

    def _product(self, host: int, place: str, number: int) -> web.Response | None:
        if not 1 <= number <= len(self._wares[host]):
            return self._missing(host)
        ware = self._wares[host][number - 1]
        if place == "p":
            return web.Response(status=301, headers={"Location": ware.path})
        if ware.kind in GONE:
            return self._missing(host, GONE[ware.kind])
        if ware.kind in FLAKY and ware not in self._failed_once:
            self._failed_once.add(ware)
            status = FLAKY[ware.kind]
            return web.Response(status=status, text="Try again") if status else None
        return _html(self._pages[host].product(ware))

    def _photo(self, host: int, number: int) -> web.Response:
        if not 1 <= number <= len(self._wares[host]):
            return self._missing(host)
        photo = self._pages[host].photo(self._wares[host][number - 1])
        return web.Response(text=photo, content_type="image/svg+xml")

    def _missing(self, host: int, status: int = 404) -> web.Response:
        return _html(self._pages[host].note("There is no such page"), status)


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def _meaning(request: web.BaseRequest) -> str:
    """The page that a request is for, without query parameters that make no difference."""
    known = [
        f"{name}={request.query[name]}" for name in ("category", "page") if name in request.query
    ]
    return f"{request.path}?{'&'.join(known)}" if known else request.path


# The shop as a process


async def _run(shop: Shop) -> None:
    stop = _stop_signal()
    async with shop:
        sys.stdout.write(json.dumps(shop.urls) + "\n")
        sys.stdout.flush()
        await stop.wait()


def _stop_signal() -> asyncio.Event:
    """An event set by SIGTERM, by Ctrl-C, and when the parent, which holds the other end of stdin,
    closes it or dies."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stdin = sys.stdin.fileno()
    mode = os.fstat(stdin).st_mode
    # Only if stdin is a pipe or a socket: a shop started in the background has /dev/null, which is
    # at its end at once.
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        loop.add_reader(stdin, _stop_at_end, stdin, stop)
    return stop


def _stop_at_end(stdin: int, stop: asyncio.Event) -> None:
    if not os.read(stdin, 4096):
        stop.set()


def main() -> None:
    """Serve until told to stop. The first line on stdout says where."""
    parser = argparse.ArgumentParser(prog="python -m shoal.demo.shop", description=main.__doc__)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--products", type=int, default=300, help="per host")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--log", type=Path, help="append each request to this file, as JSON")
    parser.add_argument("--ports", type=int, default=0, help="the first port; 0: any that are free")
    args = parser.parse_args()
    shop = Shop(
        hosts=args.hosts,
        products=args.products,
        serving=Serving(args.ports, args.latency, args.log),
    )
    asyncio.run(_run(shop))


if __name__ == "__main__":
    main()
