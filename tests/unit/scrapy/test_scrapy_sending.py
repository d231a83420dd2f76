"""By which way a leased request leaves where the project has set a proxy of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from shoal.config import Settings
from shoal.core.exits import Lent
from shoal.core.identities import LeasedIdentity
from shoal.core.proxies import ProxyAddress
from shoal.core.task import Task
from shoal.fetch.port import Route
from shoal.frontier.values import Lease
from shoal.scrapy.worker.sending import Leased, Sender
from shoal.scrapy.worker.verdicts import Life

URL = "https://shop.example/p/1"
OWN, LENT = "http://own.example:3128", "http://lent.example:8080"
ALICE = LeasedIdentity("shop#alice", is_in=True, user_agent="Alice's")


async def sent(identity: LeasedIdentity | None) -> Request:
    """A request with a proxy of the project's own, leased with an exit, as it leaves."""
    request = Request(URL, meta={"proxy": OWN})
    lease = Lease(b"f", "token", Task(url=URL), lent=Lent("res-0", 0, "res"), identity=identity)
    route = Route("res-0", proxy=ProxyAddress(scheme="http", host="lent.example", port=8080))
    leased = cast(Leased, SimpleNamespace(life=Life(lease=lease), request=request, route=route))
    left = list[Request]()

    async def download(leaving: Request) -> Response:
        left.append(leaving)
        return Response(URL, body=b"a page")

    sender = Sender(get_crawler(Spider), Settings(), lambda _: leased)
    await sender.send(request, download)
    (found,) = left
    return found


async def test_an_account_leaves_by_its_own_exit() -> None:
    found = await sent(ALICE)
    assert (found.meta["proxy"], found.headers["User-Agent"]) == (LENT, b"Alice's")


async def test_a_request_without_one_goes_as_the_project_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = await sent(None)
    assert found.meta["proxy"] == OWN
    assert "in vain" in caplog.text
