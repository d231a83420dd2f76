"""shoal proxies: exits are looked at through real proxies, and listed from a real frontier."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from shoal import config
from shoal.exits.routes import tell_of_pools
from shoal.frontier.port import Frontier
from support.bad_proxies import Forger
from support.onlooker import Onlooker
from support.own_proxies import OwnProxy, asked, pass_on
from support.processes import SHOAL, Ended, Folder, environment
from support.proxies import Gateway, MicroSocks, TinyProxy
from support.redis_servers import TlsFiles
from support.sites import serving
from support.until import LIMIT_S

CANARY = "canary-4711"
TINY, LOCKED, SOCKS, OWN = "127.0.0.11", "127.0.0.21", "127.0.0.31", "127.0.0.41"


class Telling(OwnProxy):
    """A proxy that tells the target who its clients are, and with which password."""

    def __init__(self, *headers: str) -> None:
        super().__init__()
        self._headers = headers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ask = await asked(reader)
        kept = [line for line in ask.lines if not line.lower().startswith("connection:")]
        await pass_on(ask._replace(lines=[*kept, *self._headers]), reader, writer, TINY)


class SecureEcho(Onlooker):
    """An echo with a certificate, as one behind another server."""

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        await super()._respond(request)
        seen = self.seen[-1]
        return web.json_response({"address": seen.source, "headers": seen.headers})


class Scene(NamedTuple):
    folder: Folder
    tiny: TinyProxy
    locked: TinyProxy
    socks: MicroSocks

    def check(self, *args: str | Path, env: dict[str, str] | None = None) -> Ended:
        ended = self.folder.shoal("proxies", "check", *args, env=env)
        assert CANARY not in ended.out + ended.err
        return ended

    def found(self, *lines: str) -> list[dict[str, Any]]:
        """What is said of each line of a list, by an echo of our own."""
        self.folder.write("list.txt", "\n".join(lines))
        checked: list[dict[str, Any]] = self.check("list.txt", "--json").json()
        return checked


@pytest.fixture(scope="module")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    at = tmp_path_factory.mktemp("proxies")
    with ExitStack() as stack:
        tiny = stack.enter_context(TinyProxy(at, TINY))
        locked = stack.enter_context(TinyProxy(at, LOCKED, user="me", password=CANARY))
        socks = stack.enter_context(MicroSocks(at, SOCKS, user="me", password=CANARY))
        yield Scene(Folder(at), tiny, locked, socks)


@pytest.fixture
def scene(proxies: Scene, tmp_path: Path) -> Scene:
    return proxies._replace(folder=Folder(tmp_path))


def test_exits_of_a_list_are_tried(scene: Scene) -> None:
    wrong = f"127.0.0.1:{scene.locked.port}:me:{CANARY}x"
    lines = (scene.tiny.url, scene.locked.url, scene.socks.url, f"bind://{OWN}", wrong)
    found = scene.found(*lines, "127.0.0.1:1 de")
    assert [each["seen"] for each in found] == [TINY, LOCKED, SOCKS, OWN, "", ""]
    assert [each["good"] for each in found] == [True, True, True, True, False, False]
    assert found[0]["anonymity"] == "says it is a proxy", "tinyproxy adds Via"
    assert found[2]["anonymity"] == "hides us"
    assert "401" in found[4]["verdict"]
    assert "connection refused" in found[5]["verdict"]
    assert found[5]["country"] == "de"
    assert found[1]["address"] == f"http://***@127.0.0.1:{scene.locked.port}"
    assert all(each["latency_ms"] >= 0 for each in found[:4])


def test_the_exit_code_tells_whether_some_are_bad(scene: Scene) -> None:
    scene.folder.write("good.txt", scene.tiny.url)
    scene.folder.write("bad.txt", f"{scene.tiny.url}\n127.0.0.1:1\n")
    good, bad = scene.check("good.txt"), scene.check("bad.txt")
    assert (good.code, bad.code) == (0, 3)
    assert good.out.endswith("1 of 1 are good; 1 address seen\n")
    assert bad.out.endswith("1 of 2 are good; 1 address seen\n")
    assert TINY in good.out
    assert "country" not in good.out, "columns without a word are left out"


def test_who_passes_our_address_on_is_bad(scene: Scene) -> None:
    with (
        Telling("X-Forwarded-For: 127.0.0.1") as passing,
        Telling("Via: 1.1 somebody") as saying,
        Telling("X-Kept: 1\r\nProxy-Authorization: Basic eA==") as careless,
    ):
        found = scene.found(*(f"127.0.0.1:{each.port}" for each in (passing, saying, careless)))
    assert [each["verdict"] for each in found] == [
        "passes our address on",
        "good",
        "passes our login on",
    ]
    assert found[1]["anonymity"] == "says it is a proxy"


def test_who_reads_along_is_found_by_an_echo_with_https(scene: Scene, tmp_path: Path) -> None:
    files, forged = TlsFiles(tmp_path / "tls"), TlsFiles(tmp_path / "forged")
    with serving(SecureEcho(files)) as echo, ExitStack() as stack:
        forgers = [stack.enter_context(Forger(forged)) for _ in range(4)]
        lines = (scene.tiny.url, *(f"127.0.0.1:{each.port}" for each in forgers))
        scene.folder.write("list.txt", "\n".join(lines))
        args = ("list.txt", "--echo", echo.url("/echo"), "--allow-private", "--json")
        found = scene.check(*args, env={"SSL_CERT_FILE": str(files.authority)}).json()
    assert [each["tls"] for each in found] == ["untouched", *["forged"] * 4]
    assert [each["good"] for each in found] == [True, *[False] * 4]
    assert found[0]["seen"] == TINY


def test_pools_of_the_project(scene: Scene) -> None:
    with Gateway(4, password=CANARY) as gateway:
        endpoint = f"http://customer-key-sessid-{{session}}:${{PASS}}@127.0.0.1:{gateway.port}"
        scene.folder.write(
            "shoal.toml",
            "[proxies.dc]\nfrom = 'env:PROXY_LIST'\nkind = 'datacenter'\ncountries = ['fr']\n"
            f"[proxies.res]\nendpoint = '{endpoint}'\nexits = 3\n",
        )
        env = {"PASS": CANARY, "PROXY_LIST": scene.locked.url}
        both = scene.check("--json", env=env).json()
        assert [each["exit"].partition("-")[0] for each in both] == ["dc", "res", "res", "res"]
        assert len({each["seen"] for each in both[1:]}) == 3, "each session leaves from its own"
        assert (both[0]["kind"], both[0]["country"]) == ("datacenter", "fr")
        (one,) = scene.check("res", "--limit", "1", "--json", env=env).json()
        assert one == {**both[1], "latency_ms": one["latency_ms"]}
        missing = scene.check("res", env={"PROXY_LIST": scene.locked.url})
        assert missing.code == 2
        says = "shoal: [proxies.res]: endpoint: the variable PASS is not set\n"
        assert missing.err == says


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "no pools: name a list, or write a [proxies.NAME] table in shoal.toml"),
        (["none.txt"], "neither a pool nor a file: none.txt (pools: none)"),
        (["empty.txt"], "--proxies: no proxies are in its list"),
        (["far.txt"], "--echo is missing: the address of a server that tells where"),
        (["near.txt", "--echo", "{tiny}"], "--echo: its answer does not tell where a request"),
    ],
)
def test_wrong_input_is_told_in_one_line(scene: Scene, args: list[str], says: str) -> None:
    scene.folder.write("empty.txt", "# nothing\n")
    scene.folder.write("far.txt", f"192.0.2.1:80:me:{CANARY}\n")
    scene.folder.write("near.txt", scene.tiny.url)
    filled = [arg.format(tiny=f"http://127.0.0.1:{scene.tiny.port}/") for arg in args]
    ended = scene.check(*filled, "--allow-private")
    assert ended.code == 2
    assert ended.err.startswith(f"shoal: {says}")
    assert ended.err.count("\n") == 1


def test_an_echo_is_served_until_it_is_told_to_stop(scene: Scene) -> None:
    command = [str(SHOAL), "proxies", "echo", "--listen", "127.0.0.1:0"]
    scene.folder.write("list.txt", scene.socks.url)
    with subprocess.Popen(command, env=environment({}), stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            args = ("list.txt", "--echo", url, "--json")
            (found,) = scene.check(*args, "--allow-private").json()
            assert (found["seen"], found["good"]) == (SOCKS, True)
            (refused,) = scene.check(*args).json()
            assert "private" in refused["verdict"], "an echo is a target like others"
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("listen", ["8089", "127.0.0.1:x", "127.0.0.1:99999", "192.0.2.1:1"])
def test_where_no_echo_can_be(scene: Scene, listen: str) -> None:
    ended = scene.folder.shoal("proxies", "echo", "--listen", listen)
    assert ended.code == 2
    assert ended.err.startswith("shoal: --listen: ")


def test_processes_of_a_crawl_know_its_pools_and_no_command_line_does(
    scene: Scene, tmp_path: Path
) -> None:
    folder = scene.folder
    folder.write("list.txt", scene.locked.url)
    with serving(Onlooker()) as host:
        seeds = [host.url(f"/{number}") for number in range(20)]
        options = ("--allow-private", "--rate", "none", "--workers", "2", "--name", "shop")
        env = {"SHOAL_PROXIES": "list.txt"}
        ended = folder.shoal("crawl", *seeds, *options, env=env)
        assert ended.code == 0, ended
        assert {*host.sources} == {LOCKED}, "robots.txt, too"
        assert CANARY not in "".join(f"{seen.headers}{seen.path}" for seen in host.seen)
    assert CANARY not in ended.out + ended.err
    (pool,) = folder.shoal("proxies", "list", "--json").json()
    (exit_,) = pool["listed"]
    assert exit_["requests"] == len(host.seen)
    assert exit_["leased"] == 0
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("shoal.db*"))
    assert CANARY.encode() not in stored


def test_exits_are_listed_from_the_frontier(scene: Scene) -> None:
    folder = scene.folder
    folder.write("list.txt", f"{scene.locked.url}\n{scene.socks.url}")
    folder.write(
        "shoal.toml", f"[proxies.dc]\nfrom = 'file:{folder.path}/list.txt'\nkind = 'datacenter'\n"
    )
    asyncio.run(folder.ask_frontier(lambda frontier: told(frontier, folder.path)))

    shown = folder.shoal("proxies", "list")
    assert shown.out.startswith("dc: 2 exits: 2 ready, 0 cooling, 0 out")
    (pool,) = folder.shoal("proxies", "list", "dc", "--json").json()
    assert pool["pool"] == "dc"
    assert [each["state"] for each in pool["listed"]] == ["ready", "ready"]
    assert {each["id"] for each in pool["listed"]} == {
        each["exit"] for each in scene.check("dc", "--json").json()
    }
    assert CANARY.encode() not in b"".join(
        path.read_bytes() for path in folder.path.glob("shoal.db*")
    ), "the frontier knows ids only"
    unknown = folder.shoal("proxies", "list", "res")
    assert unknown.code == 2
    assert unknown.err == "shoal: no pool 'res' here (there are: dc)\n"


async def told(frontier: Frontier, folder: Path) -> None:
    await tell_of_pools(config.load(folder=folder), frontier)


def test_no_crawl_begins_with_a_list_that_cannot_be_read(scene: Scene) -> None:
    crawl = ("crawl", "http://127.0.0.1:1/", "--allow-private")
    for option, says in (
        (("--proxies", "none.txt"), "--proxies: file:none.txt: No such file or directory"),
        (("--proxy-pool", "dc"), "proxy_pool: no such pool: dc (there are: none)"),
    ):
        ended = scene.folder.shoal(*crawl, *option)
        assert (ended.code, ended.err) == (2, f"shoal: {says}\n")
