"""A worker's accounts and a shop behind a login, all in memory, for tests of visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from multidict import CIMultiDict

from shoal.core.cookies import EMPTY, Jar
from shoal.core.session_config import SessionConfig
from shoal.errors import FetchError
from shoal.fetch.port import Fetcher, Request, Response

SITE = "https://shop.example"
CANARY = "canary-of-alice"
PROOF = "<a class=logout href=/logout>Log out</a>"
LOGIN_PAGE = (
    "<form id=login method=post action=/login><input name=user>"
    "<input type=password name=password></form>"
)
BY_FORM = SessionConfig(
    accounts="file:x",
    login_url=f"{SITE}/login",
    form="#login",
    fields={"user": "{user}", "password": "{password}"},
    logged_in="a.logout",
)


class FakeAccount(msgspec.Struct, frozen=True):
    """An account."""

    name: str
    fields: Mapping[str, str]


ALICE = FakeAccount("alice", {"user": "alice", "password": CANARY})


class FakeSessions:
    """The accounts of a worker, in memory."""

    pools = ("@shop",)

    def __init__(self, table: SessionConfig = BY_FORM, *accounts: FakeAccount) -> None:
        self._table = table
        self._accounts = {f"shop#{it.name}": it for it in accounts or (ALICE,)}
        self.calls: list[str] = []

    async def open(self) -> None:
        self.calls.append("open")

    async def keep_fresh(self) -> None:
        self.calls.append("keep_fresh")

    async def close(self) -> None:
        self.calls.append("close")

    def account(self, identity: str) -> FakeAccount | None:
        return self._accounts.get(identity)

    def table(self, identity: str) -> SessionConfig:
        assert identity.partition("#")[0] == "shop"
        return self._table

    def seal(self, identity: str, jar: Jar) -> bytes:
        return identity.encode() + b" " + msgspec.json.encode(jar)

    def unseal(self, identity: str, kept: bytes) -> Jar | None:
        owner, _, plain = kept.partition(b" ")
        if owner != identity.encode():
            return None
        return msgspec.json.decode(plain, type=Jar) if plain else EMPTY


Answer = Response | FetchError | Callable[[Request], Response]


class Shop(Fetcher):
    """A shop that lets in clients that know the password, and records all requests."""

    user_agent = "Test/1"

    def __init__(self, **answers: Answer) -> None:
        """`answers` maps the first part of a path to the answer: `product=answer(503)`."""
        self.answers = answers
        self.asked: list[Request] = []

    async def fetch(self, request: Request) -> Response:
        self.asked.append(request)
        task = request.task
        name = task.url.split("/", 3)[3].partition("?")[0].partition("/")[0]
        said = self.answers.get(name)
        if isinstance(said, FetchError):
            raise said
        if said is not None:
            found = said if isinstance(said, Response) else said(request)
        elif name == "login" and task.method == "POST":
            is_right = CANARY in (task.body or "")
            found = answer(302, "", Location="/home", Set_Cookie="sid=1") if is_right else FORM
        elif name == "login":
            found = FORM
        elif "sid=1" in request.cookies:
            found = answer(200, f"{PROOF}<h1>Lamp</h1><a href=/next></a>")
        else:
            found = answer(302, "", Location=f"/login?next=/{name}")
        return msgspec.structs.replace(found, url=task.url)

    async def close(self) -> None:
        return

    @property
    def lines(self) -> list[str]:
        """Method and path of every request."""
        return [f"{it.task.method} {it.task.url.removeprefix(SITE)}" for it in self.asked]


def answer(status: int = 200, body: str = "", **headers: str) -> Response:
    """An HTML response, with more or other headers if given."""
    named = CIMultiDict({"Content-Type": "text/html"})
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    return Response(SITE, status, named, body.encode(), 0.1)


FORM = answer(200, LOGIN_PAGE)
