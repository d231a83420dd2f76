"""Fetching: what goes out, and what comes back if nothing goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.config import Settings
from shoal.core.task import Task
from shoal.errors import ConfigError, Refused
from shoal.fetch import open_fetcher
from shoal.fetch.port import Fetcher, Request
from support.dns_server import NameServer
from support.fetching import fetching, request
from support.hostile import HostileServer
from support.hostile_pages import LATIN_1_TEXT, OK_BODY, PNG


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as fetcher:
        yield fetcher


# What comes back


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ok", OK_BODY),
        ("/empty", b""),
        ("/not-html", PNG),
        ("/no-charset", LATIN_1_TEXT.encode("latin-1")),
        ("/wrong-charset", LATIN_1_TEXT.encode("latin-1")),
        ("/no-length", OK_BODY),
        ("/chunked", OK_BODY),
        ("/gzip", OK_BODY),
    ],
)
async def test_a_page(server: HostileServer, fetcher: Fetcher, path: str, body: bytes) -> None:
    response = await fetcher.fetch(request(server.url(path)))
    assert (response.status, response.body, response.url) == (200, body, server.url(path))
    assert response.duration_s > 0


async def test_headers_in_any_case(server: HostileServer, fetcher: Fetcher) -> None:
    response = await fetcher.fetch(request(server.url("/status/503?retry_after=7")))
    assert response.status == 503
    assert response.headers["retry-after"] == response.headers["RETRY-AFTER"] == "7"


@pytest.mark.parametrize("status", [204, 304, 404, 500])
async def test_any_status(server: HostileServer, fetcher: Fetcher, status: int) -> None:
    response = await fetcher.fetch(request(server.url(f"/status/{status}")))
    assert response.status == status
    assert response.body == (b"" if status in (204, 304) else b"as you wish")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/redirect-self", "/redirect-self"),
        ("/redirect-loop", "/redirect-loop-2"),
        ("/redirect-loop-2", "/redirect-loop"),
        ("/redirect-chain/3", "/redirect-chain/2"),
        ("/redirect-chain/1", "/ok"),
        ("/redirect-to?url=//elsewhere.example/", "//elsewhere.example/"),
        ("/redirect-private", "http://127.0.0.1:1/"),
        ("/redirect-private?address=10.0.0.1", "http://10.0.0.1/"),
    ],
)
async def test_redirects_are_not_followed(
    server: HostileServer, fetcher: Fetcher, path: str, target: str
) -> None:
    response = await fetcher.fetch(request(server.url(path)))
    assert (response.status, response.headers["Location"]) == (302, target)
    assert server.paths == [path]


@pytest.mark.parametrize("path", ["/ok", "/gzip", "/not-html"])
async def test_head(server: HostileServer, fetcher: Fetcher, path: str) -> None:
    response = await fetcher.fetch(request(server.url(path), method="HEAD"))
    assert (response.status, response.body) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0


async def test_head_of_something_huge(server: HostileServer) -> None:
    async with fetching(max_body_bytes=1) as fetcher:
        response = await fetcher.fetch(request(server.url("/ok"), method="HEAD"))
    assert response.headers["Content-Length"] == str(len(OK_BODY))


# What goes out


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/a%2fb/%7Euser;v=1/?q=1+2&b=%20;x&empty=&q=0", None),
        ("/?a[]=1&b={}|^`&c='", "/?a[]=1&b={}|^`&c=%27"),
        ("//double//slash", None),
        ("/%zz/100%", None),
        ("/a b/ü?q=ü#fragment", "/a%20b/%C3%BC?q=%C3%BC"),
        ("/a/../b/./c", "/b/c"),
        ("/x HTTP/1.1\r\nX-Injected: yes", "/x%20HTTP/1.1X-Injected:%20yes"),
    ],
)
async def test_the_url_is_sent_as_a_browser_would(
    server: HostileServer, fetcher: Fetcher, path: str, sent: str | None
) -> None:
    await fetcher.fetch(request(server.url(path)))
    assert server.paths == [sent or path]


async def test_default_headers(server: HostileServer, fetcher: Fetcher) -> None:
    await fetcher.fetch(request(server.url("/ok")))
    sent = dict(server.requests[0].headers)
    assert sent.pop("Accept").startswith("text/html")
    assert sent == {
        "Host": f"127.0.0.1:{server.port}",
        "User-Agent": Settings().user_agent,
        "Accept-Encoding": "gzip, deflate",
    }


async def test_the_dot_behind_a_name_is_not_sent(server: HostileServer, fetcher: Fetcher) -> None:
    await fetcher.fetch(request(f"http://127.0.0.1:{server.port}/ok"))
    await fetcher.fetch(request(f"http://localhost.:{server.port}/ok"))
    hosts = [request.headers["Host"] for request in server.requests]
    assert hosts == [f"127.0.0.1:{server.port}", f"localhost:{server.port}"]


async def test_headers_of_the_task_go_before(server: HostileServer, fetcher: Fetcher) -> None:
    headers = {"user-agent": "mine", "X-Own": "Käse", "cookie": "a=1"}
    await fetcher.fetch(request(server.url("/ok"), headers=headers))
    sent = server.requests[0].headers
    assert (sent["User-Agent"], sent["Cookie"]) == ("mine", "a=1")
    assert sent["X-Own"].encode("latin-1").decode() == "Käse"


async def test_a_request_may_say_what_it_is(server: HostileServer, fetcher: Fetcher) -> None:
    task = Task(url=server.url("/ok"))
    own = Task(url=server.url("/ok"), headers={"user-agent": "mine"})
    for each in (Request(task, user_agent="Phone"), Request(own, user_agent="Phone")):
        await fetcher.fetch(each)
    assert [it.headers["User-Agent"] for it in server.requests] == ["Phone", "mine"]
    with pytest.raises(Refused, match="not a valid header: 'User-Agent'"):
        await fetcher.fetch(Request(task, user_agent="a\r\nX-Injected: yes"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Own", "a\r\nX-Injected: yes"),
        ("X-Own", "a\nb"),
        ("X-Own", "a\rb"),
        ("X-Own", "a\0b"),
        ("X-Own", "a\udcffb"),
        ("X-Own\r\nX-Injected", "yes"),
        ("X Own", "a"),
        ("X-Own:", "a"),
        ("Käse", "a"),
        ("", "a"),
        ("content-length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Host", "another.example"),
        ("host", ""),
    ],
)
async def test_headers_that_cannot_be_sent(
    server: HostileServer, fetcher: Fetcher, name: str, value: str
) -> None:
    with pytest.raises(Refused, match="header"):
        await fetcher.fetch(request(server.url("/ok"), headers={name: value}))
    assert server.requests == []


async def test_a_user_agent_that_cannot_be_sent() -> None:
    with pytest.raises(ConfigError, match="user_agent"):
        open_fetcher(Settings(user_agent="a\r\nb"))


async def test_post(server: HostileServer, fetcher: Fetcher) -> None:
    headers = {"Content-Type": "application/json"}
    task = Task(url=server.url("/ok"), method="POST", headers=headers, body='{"q": "Käse"}')
    assert (await fetcher.fetch(Request(task))).body == OK_BODY
    request = server.requests[0]
    assert (request.method, request.body.decode()) == ("POST", '{"q": "Käse"}')
    assert request.headers["Content-Type"] == "application/json"


async def test_a_body_of_bytes(server: HostileServer, fetcher: Fetcher) -> None:
    task = Task.post(server.url("/ok"), body=b"\xff\0\r\n")
    assert (await fetcher.fetch(Request(task))).body == OK_BODY
    request = server.requests[0]
    assert (request.body, request.headers["Content-Length"]) == (b"\xff\0\r\n", "4")
    with pytest.raises(Refused, match="this request cannot be sent: the body is not base64"):
        await fetcher.fetch(Request(Task(url=server.url("/ok"), body="/", body_is_base64=True)))


async def test_credentials_in_the_url(server: HostileServer, fetcher: Fetcher) -> None:
    await fetcher.fetch(request(f"http://me:secret@127.0.0.1:{server.port}/ok"))
    assert server.requests[0].headers["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(
    "task",
    [
        Task(url="ftp://shop.example/"),
        Task(url="/relative"),
        Task(url="http://[nonsense/"),
        Task(url="http://127.0.0.1:1/", method="CONNECT"),
        Task(url="http://127.0.0.1:1/", method="GET / HTTP/1.1\r\nX:"),
        Task(url="http://127.0.0.1:1/", method="POST", body="\udcff"),
        Task(url="http://me:pw@127.0.0.1:1/", headers={"Authorization": "Basic eA=="}),
        Task(url="http://a..b/"),
        Task(url="http://.example/"),
        Task(url="https://a..b/"),
        Task(url=f"http://{'x' * 64}.example/"),
        Task(url=f"http://{'x.' * 127}example/"),
        Task(url="http://../"),
    ],
)
async def test_requests_that_cannot_be_sent(fetcher: Fetcher, task: Task) -> None:
    with pytest.raises(Refused) as caught:
        await fetcher.fetch(Request(task))
    assert "\n" not in str(caught.value)


async def test_no_cookies_between_tasks(server: HostileServer, fetcher: Fetcher) -> None:
    url = f"http://localhost:{server.port}/ok"  # Cookie jars take nothing from bare addresses.
    response = await fetcher.fetch(request(url))
    assert "Set-Cookie" in response.headers
    await fetcher.fetch(request(url))
    assert "Cookie" not in server.requests[1].headers


async def test_no_proxy_from_the_environment(
    server: HostileServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await fetcher.fetch(request(server.url("/ok")))).status == 200


async def test_names_that_are_long_but_not_too_long(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ".".join(["x" * 63] * 3 + ["y" * 61])
    names = {name: ["127.0.0.1"], "a_b.example": ["127.0.0.1"], "localhost": ["127.0.0.1"]}
    async with NameServer(names) as name_server:
        name_server.is_used_by(monkeypatch)
        async with fetching() as fetcher:
            for host in (name, "a_b.example", "a_b.example.", "127.0.0.1", "[::ffff:127.0.0.1]"):
                response = await fetcher.fetch(request(f"http://{host}:{server.port}/ok"))
                assert response.body == OK_BODY


@pytest.mark.parametrize("path", ["/status/204", "/status/304", "/redirect-brotli"])
async def test_answers_whose_body_is_not_needed_may_be_encoded_in_any_way(
    server: HostileServer, fetcher: Fetcher, path: str
) -> None:
    response = await fetcher.fetch(request(server.url(f"{path}?encoding=br")))
    assert response.headers["Content-Encoding"] == "br"
    assert response.body == b""
