"""`shoal new`, `check`, `shell` and `spiders`, from an empty folder on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.markdown import ROOT
from support.processes import Folder
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.sites import Site, html, serving

WRONG = """
from shoal import Spider

class Shop(Spider):
    start_urls = ["https://shop.example/"]
    concurency = 3
    rate = "fast"

    def parse(self, page):
        yield page.follow("/a", handler="prodct")

    def product(self, page):
        yield page.follow("/b", callback=self.product)
"""


async def answer(path: str) -> web.Response:
    if path == "/robots.txt":
        return web.Response(status=404)
    if path == "/":
        return html('<title>Shop</title><h1>Lamps\x1b[31m</h1><a href="/lamp">1</a>')
    return html("<h1>Lamp</h1>", 200 if path == "/lamp" else 404)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site(answer)) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    home = str(tmp_path / "home")
    return Folder(tmp_path, {"SHOAL_ALLOW_PRIVATE": "yes", "HOME": home, "TERM": "dumb"})


def test_a_first_spider_runs_and_passes_every_check(folder: Folder, site: Site) -> None:
    made = folder.shoal("new", "my-shop.py", "--url", site.url)
    assert made.code == 0, made
    assert "shoal try my-shop.py" in made.out
    again = folder.shoal("new", "my-shop.py")
    assert (again.code, "already exists" in again.err) == (2, True)

    checked = folder.shoal("check", "my-shop.py")
    assert (checked.code, checked.out) == (0, "1 spider: nothing is wrong\n")
    tried = folder.shoal("try", "my-shop.py", "--json").json()
    assert [item["item"]["title"] for item in tried["items"]] == ["Shop"]
    crawled = folder.shoal("crawl", "my-shop.py", "--rate", "none", "--json")
    assert (crawled.code, crawled.json()["items"]) == (0, 2), crawled
    listed = folder.shoal("spiders", "--json").json()["spiders"]
    assert [each["target"] for each in listed] == ["my-shop.py:MyShop"]

    for command in (["ruff", "check", "--isolated"], ["ruff", "format", "--isolated", "--check"]):
        _passes(folder, *command)
    _passes(folder, "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"))


def _passes(folder: Folder, *command: str) -> None:
    program = [sys.executable, "-m", *command, "my-shop.py"]
    done = subprocess.run(program, cwd=folder.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_new_tells_to_run_is_quoted(folder: Folder) -> None:
    said = folder.call("new", "my shop.py").out
    assert "shoal try 'my shop.py'\n" in said
    assert "shoal crawl 'my shop.py' --max-pages 20\n" in said


def test_what_new_refuses(folder: Folder) -> None:
    folder.write("file", "")
    for args, why in [
        (("shop.txt",), "is not a .py file"),
        (("shop.py", "--url", "shop"), "not a URL"),
        (("shop.py", "--name", "class"), "cannot be the name of the class"),
        (("file/shop.py",), "File exists"),
    ]:
        ended = folder.call("new", *args)
        assert (ended.code, why in ended.err, ended.err.count("\n")) == (2, True, 1), ended
    assert not (folder.path / "shop.py").exists()


def test_check_says_each_mistake_with_its_line(folder: Folder) -> None:
    folder.write("shop.py", WRONG)
    folder.write("broken.py", "from shoal import Spider\nclass A(Spider):\n  x = = 1\n")
    folder.write("shoal.toml", f'rats = 1\nfrontier = "redis://127.0.0.1:{free_port()}"\n')
    ended = folder.shoal("check", "--offline")
    assert ended.code == 2
    assert ended.out.splitlines() == [
        "broken.py:3: invalid syntax",
        "shoal.toml:1: no setting 'rats'; did you mean rate?",
        "shop.py:6: concurency is not a setting; did you mean concurrency?",
        "shop.py:7: Shop: rate: not a rate: 'fast' (write 2/s, 30/m, 100/h, auto or none)",
        "shop.py:10: Shop has no handler 'prodct'; did you mean product?",
        "shop.py:13: page.follow() has no callback=: write handler=",
        "1 spider and shoal.toml: 6 findings",
    ]
    told = folder.shoal("check", "shop.py", "--offline", "--json").json()
    assert {name: value for name, value in told["findings"][2].items() if name != "message"} == {
        "file": "shop.py",
        "line": 7,
    }


def test_check_knows_every_table_and_the_environment(folder: Folder) -> None:
    right = WRONG.replace("    concurency = 3\n    rate", "    _rate").partition("    def parse")[0]
    folder.write("shop.py", right + "    def parse(self, page): ...\n")
    folder.write(
        "shoal.toml",
        '[spider.shop]\nrate = "5/s"\n\n[prices]\nmachine = 0.1\n\n'
        '[[schedule]]\nname = "shop"\ntarget = "shop.py"\ncron = "0 3 * * *"\n',
    )
    checked = folder.shoal("check", "--offline")
    assert (checked.code, checked.out) == (0, "1 spider and shoal.toml: nothing is wrong\n")

    folder.write(
        "shoal.toml",
        '[spider.shop]\nrat = "5/s"\n[spider.shup]\nrate = "5"\n[[feed]]\ncrawl = "shop"\n',
    )
    wrong = folder.shoal("check", "--offline", env={"SHOAL_RATE": "5"})
    assert (wrong.code, wrong.out.splitlines()) == (
        2,
        [
            "SHOAL_RATE: rate: not a rate: '5' (write 5/s, 30/m, 100/h, auto or none)",
            "shoal.toml: feed 1: address is missing",
            "shoal.toml:1: [spider.shop] has no setting 'rat'; did you mean rate?",
            "shoal.toml:3: [spider.shup]: rate: not a rate: '5' (write 5/s, 30/m, 100/h, auto or"
            " none)",
            "shoal.toml:3: [spider.shup]: there is no spider 'shup'; did you mean shop?",
            "1 spider and shoal.toml: 5 findings",
        ],
    )


def test_check_asks_the_servers(folder: Folder) -> None:
    folder.write("shop.py", WRONG.replace("    concurency = 3\n    rate", "    _rate"))
    away = f"127.0.0.1:{free_port()}"
    folder.write(
        "shoal.toml",
        f'frontier = "redis://{away}"\nresults = "postgresql://{away}/shop"\n'
        f'publish = "amqp://{away}"\nproxies = "nothing.txt"\n'
        f'[[feed]]\ncrawl = "shop"\naddress = "redis://{away}?key=seeds"\n',
    )
    ended = folder.shoal("check", "shop.py", "--json")
    assert ended.code == 2
    found = {each["file"]: each["message"] for each in ended.json()["findings"]}
    for what in ("frontier", "results", "publish", "feed"):
        assert "cannot be reached" in found[what], found
        assert "is it running?" in found[what]
    assert "nothing.txt" in found["proxies"]


def test_check_asks_the_broker_that_carries_tasks(
    folder: Folder, rabbitmq_server: RabbitServer, redis_server: RedisServer
) -> None:
    folder.write("shop.py", WRONG.replace("    concurency = 3\n    rate", "    _rate"))
    broker = rabbitmq_server
    for address, why in [
        (broker.url_of("test", "wrong"), "the login is refused"),
        (f"amqp://127.0.0.1:{free_port()}", "is it running?"),
    ]:
        folder.write("shoal.toml", f'frontier = "{address}"\nstate = "{redis_server.url}"\n')
        ended = folder.shoal("check", "shop.py", "--json")
        found = {each["file"]: each["message"] for each in ended.json()["findings"]}
        assert (ended.code, why in found["frontier"]) == (2, True), ended


def test_a_mistake_is_warned_of_when_a_crawl_starts(folder: Folder, site: Site) -> None:
    text = f"from shoal import Spider\nclass S(Spider):\n    start_urls = ['{site.url}']\n"
    text += "    max_page = 1\n    def item(self, item): return item\n"
    folder.write("s.py", text + "    def parse(self, page): ...\n")
    ended = folder.shoal("crawl", "s.py", "--rate", "none")
    assert ended.code == 0
    assert ended.err.count("S.max_page is not a setting; did you mean max_pages?") == 1, ended.err
    assert ended.err.count("S.item must take (self, item, page) to be called as a hook") == 1


def test_a_prompt_that_runs_code(folder: Folder, site: Site) -> None:
    code = "page.css('h1::text').get()"
    for place in (site.url, "saved.html"):
        folder.write("saved.html", "<h1>Lamps\x1b[31m</h1>")
        ended = folder.shoal("shell", place, "-c", code)
        assert (ended.code, ended.out) == (0, "'Lamps\\x1b[31m'\n"), ended
    raised = folder.shoal("shell", "-c", "1 / 0")
    assert (raised.code, "ZeroDivisionError" in raised.err) == (1, True)
    assert "shoal/" not in raised.err
    assert folder.shoal("shell", "missing.html").code == 2
    alone = folder.shoal("shell", site.url, "--no-allow-private", "-c", code)
    assert alone.code == 1
    assert alone.err.endswith("is a private address (see --allow-private)\n"), alone


def test_a_prompt_that_reads_stdin(folder: Folder, site: Site) -> None:
    folder.shoal("new", "shop.py", "--url", site.url)
    lines = (
        "for item in spider.parse(page):",
        "    print(type(item).__name__)",
        "",
        f"fetch('{site.url}nothing').status",
        "page.status",
        "fetch('ftp://x')",
        "print(page.css('h1::text').get() + '\\x1b[31m')",
        "from pathlib import Path",
        "Path(view()).read_bytes()",
    )
    ended = folder.shoal("shell", site.url, "--spider", "shop.py", stdin="\n".join(lines))
    assert ended.code == 0, ended
    assert ended.out.splitlines()[:4] == ["WebPage", "Task", "404", "404"]
    assert "b'<h1>Lamp</h1>'" in ended.out
    assert "BadUrl: not an http(s) URL: 'ftp://x'" in ended.err


def test_a_folder_without_spiders_says_so(folder: Folder) -> None:
    ended = folder.call("spiders")
    assert (ended.code, ended.out) == (0, "no spiders here: shoal new shop.py writes a first one\n")


def test_a_table_of_spiders(folder: Folder) -> None:
    folder.write("shop.py", WRONG)
    folder.write("broken.py", "from shoal import Spider\nclass A(Spider):\n  x = = 1\n")
    ended = folder.shoal("spiders")
    assert ended.code == 1
    assert ended.err == "broken.py:3: invalid syntax\n"
    assert "shop.py:Shop" in ended.out
    assert "parse, product" in ended.out
    assert "rate=fast" in ended.out
    assert folder.shoal("spiders", "nothing/").code == 2


@pytest.mark.rare
def test_the_tour_ends_with_one_page(folder: Folder) -> None:
    """Its broken products stay dead: the shop is closed by then."""
    ended = folder.shoal("demo", "--workers", "1", "--hosts", "1", "--products", "18")
    assert ended.code == 0, ended
    assert "shoal dead list" in ended.out
    assert "to try again" not in ended.out
    tour, tried, explained = (ended.out[i:] for i in _places(ended.out, "shoal try", "shoal expl"))
    assert "first items" in tour
    assert "product gave 1 item" in tried
    assert "found on" in explained


def _places(text: str, *parts: str) -> list[int]:
    """Where each begins, after the beginning of all."""
    return [0, *(text.index(part) for part in parts)]
