"""shoal advise, asked of crawls that are under way."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from support.processes import Folder
from support.redis_servers import RedisServer
from support.slow_crawls import crawling
from support.until import until_now


@pytest.fixture
def sqlite(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def on_redis(tmp_path: Path, redis_server: RedisServer) -> Folder:
    return Folder(tmp_path, {"SHOAL_FRONTIER": redis_server.url})


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Folder:
    found: Folder = request.getfixturevalue(request.param)
    return found


def advised(folder: Folder, *options: str) -> Any:
    """What is advised, as soon as there is something."""

    def ask() -> Any:
        ended = folder.shoal("advise", "shop", "--json", *options)
        assert (ended.code, ended.err) == (0, ""), ended
        told = ended.json()
        assert told["standing"] in ("ready", "too_early")
        return told if told["standing"] == "ready" else None

    return until_now("advice", ask)


@pytest.mark.rare
@pytest.mark.parametrize("folder", ["sqlite", "on_redis"], indirect=True)
def test_of_one_host_at_a_rate_it_says_that_workers_do_not_help(folder: Folder) -> None:
    with crawling(folder, 1, "--rate", "10/s", "--workers", "2") as site:
        told = advised(folder)
        shown = folder.shoal("advise", "shop").out
        folder.shoal("pause", "shop")
        paused = folder.shoal("advise", "shop")
    assert told["limit"] == told["last_limit"] == "hosts"
    assert told["enough"]["workers"] == 1
    assert told["enough"]["floor"]["name"] == site.hosts[0]
    effects = {effect["lever"]: effect["helps"] for effect in told["effects"]}
    assert not effects["workers"]
    assert effects["rate"]
    says = f"more workers, or more requests at once per worker: {site.hosts[0]} allows 10/s"
    assert says in told["words"]["would not"]
    assert says in shown
    assert "1 worker: the other one makes no difference" in shown
    assert paused.code == 0
    assert "it is paused: shoal resume shop" in paused.out


@pytest.mark.rare
@pytest.mark.parametrize("folder", ["on_redis", "sqlite"], indirect=True)
def test_of_many_hosts_and_one_worker_it_says_how_many_are_enough(folder: Folder) -> None:
    (folder.path / "shoal.toml").write_text("[prices]\nmachine = 0.05\nredis = 40\n")
    what_ifs = ("--what-if", "workers=4", "--what-if", "rate=20/s,workers=4")
    with crawling(folder, 20, "--rate", "10/s", "--concurrency", "16"):
        told = advised(folder, *what_ifs, "--deadline", "10m")
        shown = folder.shoal("advise", "shop", *what_ifs, "--plot", "plan.svg")
    enough, now = told["enough"], told["now"]
    assert (now["workers"], now["limit"]) == (1, "slots")
    assert 4 <= enough["workers"] <= 16  # 182 pages/s, of which one worker does less than 16.
    assert enough["seconds"] < now["seconds"] / 2
    assert told["last_limit"] == "hosts"
    assert 1 < told["deadline"]["workers"] <= enough["workers"]
    assert now["cost"]["total"] > enough["cost"]["total"] > 0
    assert [asked["workers"] for asked in told["what_if"]] == [4, 4]
    assert told["what_if"][0]["seconds"] < now["seconds"] / 2
    assert "all slots are in use: 1 worker with 16 requests at once" in shown.out
    assert "rate=20/s,workers=4" in shown.out
    assert shown.err == "drawn: plan.svg\n"
    drawn = ElementTree.fromstring((folder.path / "plan.svg").read_text("utf-8"))
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"as it is", "rate=20/s", "workers"} <= set(texts)


def test_what_makes_no_sense_is_one_line(sqlite: Folder) -> None:
    sqlite.shoal("seed", "shop", "https://shop.example/")
    for options, words in (
        (("nosuch",), "nosuch"),
        (("shop", "--deadline", "2020-01-01"), "deadline '2020-01-01': lies in the past"),
        (("shop", "--what-if", "speed=9"), "what-if 'speed=9': write one of workers=8"),
        (("shop", *("--what-if", "workers=2") * 21), "--what-if: at most 20"),
        (("shop", "--plot", "plan.gif"), "the name must end in .svg"),
    ):
        ended = sqlite.shoal("advise", *options)
        assert ended.code == 2, ended
        assert ended.err.count("\n") == 1
        assert words in ended.err
    told = sqlite.shoal("advise", "shop", "--plot", "plan.svg")
    assert told.code == 0
    assert "nobody has started it yet" in told.out
    assert told.err.startswith("nothing to draw: nobody has started it yet")
    (sqlite.path / "shoal.toml").write_text("[prices]\nmachine = 'much'\n")
    ended = sqlite.shoal("advise", "shop")
    assert (ended.code, ended.err.startswith("shoal: shoal.toml: [prices] machine must be ")) == (
        2,
        True,
    )
    assert sqlite.shoal("status", "shop").code == 0
