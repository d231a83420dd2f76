"""Who gets into a real `shoal serve`, and what every answer has."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.processes import Folder
from support.until import until_now
from support.web import LOCAL, Answered, Web, serving_web

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
ADMIN, READ = "admin-token-of-the-test", "read-token-of-the-test"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Without a token."""
    with serving_web(Folder(tmp_path_factory.mktemp("open"))) as server:
        server.post("/api/v1/crawls/shop/seeds", {"seeds": ["https://a.example/"]})
        yield server


@contextmanager
def serving_closed(path: Path) -> Iterator[Web]:
    """With tokens, below a prefix."""
    folder = Folder(path)
    folder.write("tokens", f"{ADMIN}\nread {READ}\n").chmod(0o600)
    options = ("--token-file", "tokens", "--prefix", "/x", "--allow-host", "crawls.example")
    with serving_web(folder, *options) as server:
        yield server


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving_closed(tmp_path_factory.mktemp("closed")) as server:
        yield server


def by(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "path",
    ["/", "/healthz", "/readyz", "/api/v1/crawls", "/api/v1/crawls/nothing", "/nothing",
     "/static/app.js", "/static/nothing", "/api/openapi.json", "/live/", "/login"],
)  # fmt: skip
def test_every_answer_has_the_policy(opened: Web, path: str) -> None:
    headers = opened.get(path, {"Accept": "text/html"}).headers

    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"] == "shoal"


def test_another_name_is_not_served_even_on_loopback(opened: Web) -> None:
    for path in ("/", "/healthz", "/static/app.js", "/nothing"):
        answer = opened.get(path, {"Host": "evil.example"})
        assert answer.status == 421
        assert answer.headers["Content-Security-Policy"] == POLICY


def test_a_page_elsewhere_cannot_change_anything(opened: Web) -> None:
    path = "/crawls/shop/cancel"
    origin = opened.base

    def send(**headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return opened.send("POST", path, b"", {**FORM, **named})

    assert send().status == 403
    assert send(Sec_Fetch_Site="cross-site").status == 403
    assert send(Sec_Fetch_Site="same-site", Origin=origin).status == 403
    assert send(Origin="http://evil.example").status == 403
    assert send(Origin="null").status == 403
    assert opened.send("POST", f"/api/v1{path}", b"", {"Content-Type": "text/plain"}).status == 403
    assert opened.get("/api/v1/crawls/shop").json["state"] == "new"
    assert opened.send("POST", "/crawls/shop/pause", b"", {**FORM, **OWN_PAGE}).status in (303, 409)


def test_programs_on_loopback_send_any_word(opened: Web) -> None:
    seeds = {"seeds": ["https://a.example/2"]}
    assert opened.post("/api/v1/crawls/shop/seeds", seeds).json["added"] == 1


def test_roles(closed: Web) -> None:
    assert closed.get("/x/healthz").status == 200
    assert closed.get("/healthz").status == 404
    assert closed.get("/x/api/v1/crawls").status == 401
    assert closed.get("/x/live/").status == 401
    assert closed.get("/x/api/v1/crawls", by(READ)).status == 200
    assert closed.get("/x/", {"Host": "crawls.example", **by(READ)}).status == 200
    seeds, kind = b'{"seeds": ["https://a.example/"]}', {"Content-Type": "application/json"}
    path = "/x/api/v1/crawls/shop/seeds"
    assert closed.send("POST", path, seeds, {**kind, **by(READ)}).status == 403
    assert closed.send("POST", path, seeds, {**kind, **LOCAL}).status == 401
    assert closed.send("POST", path, seeds, {**kind, **OWN_PAGE}).status == 401
    assert closed.send("POST", path, seeds, {**kind, **by(ADMIN)}).status == 200


def log_in(server: Web, token: str, then: str = "", prefix: str = "/x") -> Answered:
    body = urlencode({"token": token, **({"then": then} if then else {})}).encode()
    return server.send("POST", f"{prefix}/login", body, {**FORM, **OWN_PAGE})


def asked_for(page: Answered) -> str | None:
    """The page to which a form for a token leads."""
    found = re.search(r'name="then" value="([^"]*)"', page.body.decode())
    return unescape(found[1]) if found else None


def test_a_browser_gets_a_cookie_that_its_scripts_cannot_read(closed: Web) -> None:
    page = closed.get("/x/", {"Accept": "text/html"})
    assert (page.status, b'name="token"' in page.body) == (401, True)
    assert log_in(closed, "wrong").status == 401
    answer = log_in(closed, ADMIN)
    cookie = SimpleCookie(answer.headers["Set-Cookie"])["shoal"]

    assert (answer.status, answer.headers["Location"]) == (303, "/x/")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/x")
    assert ADMIN not in answer.headers["Set-Cookie"]
    ours = {"Cookie": f"shoal={cookie.value}"}
    assert closed.get("/x/", ours).status == 200
    assert closed.send("POST", "/x/schedules/a/run", b"", {**FORM, **ours}).status == 403
    assert (
        closed.send("POST", "/x/schedules/a/run", b"", {**FORM, **ours, **OWN_PAGE}).status == 404
    )
    assert closed.get("/x/", {"Cookie": f"shoal={cookie.value}x"}).status == 401


@pytest.mark.parametrize(
    "path",
    ["/x/crawls/shop/hosts?q=a%26b&order=slowest", "/x/crawls/a%2Fb", "/x/crawls/%22%3E%3Cb%3E",
     "/x/explain?crawl=shop&url=https%3A%2F%2Fa.example%2F%3Fa%3D%221%22", "/x/"],
)  # fmt: skip
def test_who_logs_in_sees_the_page_that_was_asked_for(closed: Web, path: str) -> None:
    page = closed.get(path, {"Accept": "text/html"})
    assert (page.status, asked_for(page)) == (401, path)
    again = log_in(closed, "wrong", then=path)
    assert (again.status, asked_for(again)) == (401, path)

    answer = log_in(closed, READ, then=path)
    assert (answer.status, answer.headers["Location"]) == (303, path)


def test_a_button_that_was_pressed_without_a_login_is_not_pressed_after_it(closed: Web) -> None:
    path = "/x/crawls/shop/cancel"
    page = closed.send("POST", path, b"", {**FORM, **OWN_PAGE, "Accept": "text/html"})

    assert (page.status, asked_for(page)) == (401, None)
    assert log_in(closed, ADMIN).headers["Location"] == "/x/"


ELSEWHERE = [
    *("//evil.example", "//evil.example/crawls/shop", "/\\evil.example", "\\\\evil.example"),
    *("https:", "https://evil.example/", "https:/crawls/shop", "javascript:alert(1)", "evil"),
    *("/crawls/shop\r\nSet-Cookie: a=b", "/crawls/shop\n", "/crawls/sh\top", "/crawls/shop\0"),
    *("/crawls/shop?a=\r\nb", "/crawls/shop?a=é", "/crawls/\\evil.example", " /crawls/shop"),
    *("/crawls/..", "/crawls/%2e%2E", "/crawls/./hosts", "/crawls/%2e./hosts"),
    *("/crawls/shop/pause", "/logout", "/login", "/static/app.js", "/nothing", "", "/" * 9000),
]


@pytest.mark.parametrize("then", ELSEWHERE, ids=lambda then: repr(then[:40]))
def test_a_login_leads_nowhere_but_to_an_own_page(opened: Web, closed: Web, then: str) -> None:
    assert log_in(opened, "", then, prefix="").headers["Location"] == "/"
    for place in (then, f"/x{then}"):
        answer = log_in(closed, READ, place)
        assert (answer.status, answer.headers["Location"]) == (303, "/x/"), place
        assert "a=b" not in answer.headers["Set-Cookie"]


def test_another_coordinator_with_the_token_accepts_the_cookie(closed: Web, tmp_path: Path) -> None:
    cookie = SimpleCookie(log_in(closed, READ).headers["Set-Cookie"])["shoal"].value
    other = tmp_path / "other"
    other.mkdir()
    folder = Folder(other)
    folder.write("tokens", f"read {READ}\n")
    with serving_web(folder, "--token-file", "tokens") as server:
        assert server.get("/", {"Cookie": f"shoal={cookie}"}).status == 200


def test_wrong_tokens_are_limited(tmp_path: Path) -> None:
    with serving_closed(tmp_path) as server:
        answers = [server.get("/x/api/v1/crawls", by("wrong")).status for _ in range(10)]
        assert answers == [401] * 10
        late = server.get("/x/api/v1/crawls", by(ADMIN))
        assert late.status == 429
        assert 0 < int(late.headers["Retry-After"]) <= 61
        assert log_in(server, ADMIN).status == 429
        assert ADMIN not in server.process.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--listen", "0.0.0.0:0"), "needs a token: --token-file or SHOAL_TOKEN"),
        (("--listen", "nonsense"), "write HOST:PORT"),
        (("--token-file", "nothing"), "--token-file nothing: "),
        (("--prefix", "x"), "--prefix 'x': write a path"),
        (("--listen", "203.0.113.1:1"), "needs a token"),
        (("--token-file", "tokens", "--listen", f"{'x' * 70}:0"), "that is no host name"),
        (("--token-file", "tokens", "--listen", "203.0.113.1:1"), "Cannot assign requested"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(
    options: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("a-token-of-some-length\n")
    ended = Folder(tmp_path).process("serve", *options)

    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert says in ended.err.splitlines()[-1]


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = Folder(tmp_path).process("serve", "--listen", listen)
    assert ended.code == 2
    assert f"cannot listen on {listen}: Address already in use" in ended.err


def test_it_ends_in_good_order_with_a_stream_open(tmp_path: Path) -> None:
    with serving_web(Folder(tmp_path)) as server:
        host, port = server.base.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"POST /api/v1/crawls/a/seeds HTTP/1.1\r\nHost: {host}\r\n"
                "Authorization: Bearer x\r\nContent-Type: application/x-ndjson\r\n"
                "Content-Length: 1000\r\n\r\n"
                "https://a.example/\n".encode()
            )
            server.get("/healthz")
            server.process.send(signal.SIGTERM)
            until_now("its end", server.process.has_ended)
        assert server.process.wait().code == 0


def test_without_the_web(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.running("serve", "--no-web") as process:
        until_now("it to lead", lambda: "leading" in process.err)
        assert "listening" not in process.err
