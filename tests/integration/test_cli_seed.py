"""`shoal seed` from files, as a user types it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.config import Rules
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.values import Added, Entry
from shoal.seeds import sources
from shoal.seeds.bookmarks import Bookmarks
from shoal.seeds.sources import Seeder, Sources
from support.processes import Folder
from support.redis_servers import RedisServer
from support.until import until_now


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_csv_file_with_bad_lines(folder: Folder) -> None:
    rows = ["url,handler,priority", "https://a.example/1,product,5", "nonsense,,", "x", ""]
    folder.write("seeds.csv", "\n".join(rows))
    ended = folder.shoal("seed", "shop", "--file", "seeds.csv")
    assert ended.out == "shop: 1 added, 0 known already, 2 bad\n"
    assert "seed 3 skipped" in ended.err
    assert "seed 4 skipped" in ended.err
    record = folder.find("shop", "https://a.example/1")
    assert record is not None
    assert (record.task.job_type, record.task.priority) == ("product", 5)


def test_many_bad_lines_are_counted(folder: Folder) -> None:
    folder.write("seeds.txt", "nonsense\n" * 500 + "https://a.example/1\n")
    ended = folder.shoal("seed", "shop", "--file", "seeds.txt")
    assert ended.code == 0
    assert ended.err.count("skipped") == 21
    assert "and 480 more were skipped" in ended.err


def test_the_first_lines_can_be_left_out(folder: Folder) -> None:
    folder.write("seeds.txt", "".join(f"https://a.example/{number}\n" for number in range(10)))
    ended = folder.shoal("seed", "shop", "--file", "seeds.txt", "--skip", "7")
    assert ended.out == "shop: 3 added, 0 known already, 0 bad\n"


def test_a_run_that_is_interrupted_says_how_to_go_on(folder: Folder) -> None:
    folder.write("seeds.txt", "".join(f"https://a.example/{n}\n" for n in range(300_000)))
    with folder.running("seed", "shop", "--file", "seeds.txt") as seeding:
        until_now("the frontier", lambda: (folder.path / "shoal.db").exists())
        until_now("seeds", lambda: "shop" in crawls_in(folder) and folder.stats("shop").added)
        seeding.send(signal.SIGINT)
        ended = seeding.wait()
    assert ended.code == 130
    assert "to continue, run the same command again" in ended.err
    assert folder.stats("shop").added < 300_000


class Stopped(Exception):
    """As if the process had been killed."""


async def test_a_file_is_gone_on_with_where_its_reading_was_stopped(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MARK_EVERY", 1000)
    file = folder.write("seeds.txt", "".join(f"https://a.example/{n}\n" for n in range(5000)))
    async with frontier_at(f"sqlite:///{folder.path}/shoal.db") as frontier:
        add, calls = frontier.add, 0

        async def add_a_few(crawl: str, entries: Sequence[Entry]) -> Added:
            nonlocal calls
            calls += 1
            if calls == 6:
                raise Stopped
            return await add(crawl, entries)

        with monkeypatch.context() as patched:
            patched.setattr(frontier, "add", add_a_few)
            with pytest.raises(Stopped):
                await one_seeder(frontier).seed(Sources(file=file))
        second = one_seeder(frontier)
        assert await second.seed(Sources(file=file)) == Added(2500, 500)
        assert second.went_on_after == 2000
        assert await one_seeder(frontier).seed(Sources(file=file)) == Added(0, 5000)


def one_seeder(frontier: Frontier) -> Seeder:
    return Seeder(frontier, "shop", lambda what, why: None, lambda what, count: None)


async def test_a_bookmark_is_of_one_crawl_and_of_one_file(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("https://a.example/1\n")
    async with frontier_at(f"sqlite:///{tmp_path}/shoal.db") as frontier:
        await frontier.start("shop", Rules())
        await Bookmarks(frontier, "shop", file).put(7)
        assert await Bookmarks(frontier, "shop", file).line() == 7
        assert await Bookmarks(frontier, "other", file).line() == 0
        await frontier.forget("shop")
        assert await Bookmarks(frontier, "shop", file).line() == 0
        await frontier.start("shop", Rules())
        assert await Bookmarks(frontier, "shop", file).line() == 0
        await Bookmarks(frontier, "shop", file).put(7)
        file.write_text("https://a.example/1\nhttps://a.example/2\n")
        assert await Bookmarks(frontier, "shop", file).line() == 0


def crawls_in(folder: Folder) -> str:
    return folder.shoal("status").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--file", "nothing.csv"), "nothing.csv: No such file"),
        (("--file", "."), "Is a directory"),
        (("--file", "bad.csv"), "`url` among them"),
        (("--sitemap", "nonsense"), "nonsense"),
        (("--sitemap", "https://a.example/x.xml", "--since", "soon"), "not a time span: 'soon'"),
    ],
)
def test_mistakes_are_one_line(folder: Folder, words: tuple[str, ...], says: str) -> None:
    folder.write("bad.csv", "address\nhttps://a.example/1\n")
    ended = folder.shoal("seed", "shop", *words)
    assert ended.code == 2
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.rare
def test_a_crawl_that_no_worker_has_seen_is_repaired_without_results(
    folder: Folder, redis_server: RedisServer
) -> None:
    redis_server.client().flushall()
    urls = [f"https://shop.example/p/{number}" for number in range(4000)]
    folder.write("urls.txt", "\n".join(urls))
    env = {"SHOAL_FRONTIER": f"{redis_server.url}?blocks=on"}
    assert folder.process("seed", "shop", "--file", "urls.txt", env=env).code == 0
    redis_server.client().delete(*redis_server.client().keys("*:blocks"))
    command = ("seed", "shop", "--repair", "--json", "--file", "urls.txt", "--skip", "0")
    ended = folder.process(*command, env=env)
    assert ended.code == 0, ended
    told = ended.json()
    assert told["lost"] > 64
    assert told["forgotten"] == told["added"] >= told["lost"]
    assert not (folder.path / "shoal.db").exists()
