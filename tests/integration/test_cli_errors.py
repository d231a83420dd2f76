"""Wrong use of the command line: exit code 2, one clear line on stderr, never a traceback.

Most commands are called in this process: starting one takes ten times as long."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.version import __version__
from support.processes import Ended, Folder

SPIDERS = """
from shoal import Spider

class Good(Spider):
    start_urls = ["http://127.0.0.1:9/"]
    allow_private = True
    def parse(self, page): ...

class Init(Good):
    def __init__(self):
        raise RuntimeError("not ready")

class Fast(Good):
    rate = "fast"

class Many(Good):
    workers = "many"

class StartRaises(Spider):
    def start(self):
        raise ValueError("no seeds\\ntoday")

class StartRaisesLater(Spider):
    def start(self):
        yield "http://127.0.0.1:9/"
        raise ValueError("no more seeds")

class Unread(Spider):
    start_urls = ["http://127.0.0.1:9/"]

class StartsWithBadUrl(Spider):
    start_urls = ["shop.example"]
    def parse(self, page): ...
"""

NOBODY = "--frontier redis://127.0.0.1:1"

COMMANDS = [
    *("crawl", "worker", "seed", "status", "explain", "pause", "resume", "cancel", "export"),
    *("demo", "dead", "dead list", "dead show", "dead retry", "dead purge"),
    *("reparse", "merge", "drain", "scrapy", "scrapy migrate"),
    *("results", "results schema", "results prune", "results duplicates"),
    *("serve", "schedule", "schedule list", "schedule run", "schedule pause", "schedule resume"),
    "schedule history",
]
GROUPS = {"dead", "scrapy", "results", "schedule"}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("spiders.py", SPIDERS)
    folder.write("two.py", "from shoal import Spider\nclass A(Spider): ...\nclass B(Spider): ...\n")
    folder.write("syntax.py", "def (:\n")
    folder.write("divides.py", "x = 1\ny = x / 0\n")
    return folder


def assert_one_line(ended: Ended, says: str, code: int = 2) -> None:
    assert ended.code == code, ended
    assert re.fullmatch(r"shoal: .+\n", ended.err), ended.err
    assert "Traceback" not in ended.err
    assert says in ended.err


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("missing.py", "no such file: missing.py"),
        ("two.py", "several spiders (A, B): write two.py:A"),
        ("spiders.py:Nobody", "no class 'Nobody'"),
        ("no_such_module:Shop", "no module named 'no_such_module'"),
        ("", "not a target: ''"),
        ("syntax.py", "syntax.py:1: "),
        ("divides.py", "divides.py:2: ZeroDivisionError: division by zero"),
        ("http://", "not a URL: 'http://'"),
        ("spiders.py:Init", "RuntimeError: not ready"),
        ("spiders.py:Fast", "not a rate: 'fast'"),
        ("spiders.py:StartRaises", "start() raised ValueError: no seeds today"),
        ("spiders.py:StartRaisesLater", "start() raised ValueError: no more seeds"),
        ("spiders.py:Unread", "Unread has no method 'parse' to read its start URLs"),
        ("spiders.py:StartsWithBadUrl", "not a URL: 'shop.example'"),
    ],
)
def test_a_wrong_target(folder: Folder, target: str, says: str) -> None:
    assert_one_line(folder.call("crawl", target), says)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("crawl", "Missing argument"),
        ("crawl spiders.py:Good --frontier shoal.db", "no frontier for 'shoal.db'"),
        ("crawl spiders.py:Good --frontier sqlite:///no/such/x.db", "the folder does not exist"),
        ("crawl spiders.py:Good --results gopher://x", "no results store for 'gopher"),
        ("crawl spiders.py:Good --results sqlite:///no/such/x.db", "the folder does not exist"),
        ("crawl spiders.py:Good --rate fast", "not a rate: 'fast'"),
        ("crawl spiders.py:Good --rate 5", "not a rate: '5' (write 5/s, "),
        ("crawl spiders.py:Good --workers 0", "shoal: workers must be a whole number, at least 1"),
        ("crawl spiders.py:Good --workers many", "shoal: workers must be a whole number"),
        ("crawl spiders.py:Many", "the spider: workers must be a whole number, at least 1"),
        ("crawl spiders.py:Good --wrokers 2", "No such option: --wrokers"),
        ("worker spiders.py:Init", "RuntimeError: not ready"),
        (f"crawl spiders.py:Good {NOBODY}", "shoal: cannot be reached: redis://127.0.0.1:1: "),
        (f"status shop {NOBODY}", "is the address right, and is it running?"),
        (f"pause shop {NOBODY}", "is the address right, and is it running?"),
        ("crwal spiders.py", "No such command 'crwal'"),
        ("export nope -o items.xml", "no format has this suffix"),
        ("seed nope --file missing.txt", "missing.txt: No such file"),
        ("seed nope shop.example", "seed 1 skipped: not a URL: 'shop.example'"),
    ],
)
def test_a_wrong_command(folder: Folder, command: str, says: str) -> None:
    assert_one_line(folder.call(*command.split()), says)


def test_a_crawl_that_nobody_knows(folder: Folder) -> None:
    assert folder.call("seed", "news", "http://a.example/").code == 0
    asking = ("status", "dead list", "dead retry", "rejected list", "pause", "cancel", "export")
    for command in asking:
        ended = folder.call(*command.split(), "nope")
        assert_one_line(ended, "no crawl named 'nope'")
    for asking_of in ("explain", "rejected show"):
        ended = folder.call(*asking_of.split(), "nope", "http://a.example/")
        assert_one_line(ended, "no crawl named 'nope'")
    assert folder.call("rejected", "list", "news").out == "no rejected items\n"


def test_asking_makes_no_database(folder: Folder) -> None:
    for command in ("status nope", "export nope"):
        ended = folder.call(*command.split())
        assert_one_line(ended, "no crawls here: shoal.db does not exist")
    assert not (folder.path / "shoal.db").exists()


def test_a_wrong_url_of_a_crawl_that_exists(folder: Folder) -> None:
    assert folder.call("seed", "news", "http://a.example/").code == 0
    for command in (["explain"], ["dead", "show"], ["dead", "retry"]):
        ended = folder.call(*command, "news", "a.example")
        assert_one_line(ended, "not a URL: 'a.example'")
    assert_one_line(folder.call("dead", "show", "news", "http://a.example/"), "not dead")


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("wrokers = 2", "shoal.toml: no setting 'wrokers'; did you mean workers?"),
        ("workers = 'many'", "shoal.toml: workers must be a whole number"),
        ("rate = 5", "shoal.toml: rate: not a rate: '5' (write 5/s"),
        ("workers = ", "shoal.toml: "),
    ],
)
def test_a_wrong_file_of_settings(folder: Folder, toml: str, says: str) -> None:
    folder.write("shoal.toml", toml)
    assert_one_line(folder.call("crawl", "spiders.py:Good"), says)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SHOAL_RATE", "fast", "not a rate: 'fast'"),
        ("SHOAL_WORKERS", "many", "SHOAL_WORKERS: workers must be a whole number"),
        ("SHOAL_ALLOW_PRIVATE", "perhaps", "SHOAL_ALLOW_PRIVATE: allow_private must be yes or no"),
    ],
)
def test_a_wrong_variable(folder: Folder, name: str, value: str, says: str) -> None:
    assert_one_line(folder.call("crawl", "spiders.py:Good", env={name: value}), says)


def test_a_wrong_command_makes_no_crawl(folder: Folder) -> None:
    folder.call("crawl", "spiders.py:Init")
    folder.call("crawl", "spiders.py:Good", "--rate", "fast")
    folder.call("seed", "nope", "shop.example")
    assert folder.call("status").out == "no crawls here yet\n"


def test_a_password_in_an_address_is_not_shown(folder: Folder) -> None:
    address = "postgresql://me:s3cret@db.example/shop"
    for option in ("--frontier", "--results"):
        ended = folder.call("crawl", "spiders.py:Good", option, address)
        assert ended.code == 2
        assert "s3cret" not in ended.err


@pytest.mark.parametrize("option", ["--frontier", "--results"])
def test_a_file_that_is_no_database_is_left_alone(folder: Folder, option: str) -> None:
    content = bytes(range(256)) * 200
    file = folder.path / "notes.db"
    file.write_bytes(content)
    ended = folder.call("crawl", "spiders.py:Good", option, "sqlite:///notes.db")
    assert_one_line(ended, "notes.db: file is not a database", code=1)
    assert file.read_bytes() == content


def test_a_database_that_was_cut_off_is_left_alone(folder: Folder) -> None:
    assert folder.call("seed", "news", *(f"http://a.example/{n}" for n in range(500))).code == 0
    file = folder.path / "shoal.db"
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.write_bytes(half)
    for command in ("crawl spiders.py:Good --name news", "status news", "export news"):
        ended = folder.call(*command.split())
        assert_one_line(ended, "shoal.db: database disk image is malformed", code=1)
    assert file.read_bytes() == half


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_a_command(folder: Folder, command: str) -> None:
    ended = folder.call(*command.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"Usage: shoal {command}" in ended.out
    if command not in GROUPS:
        assert f"shoal {command}" in ended.out.partition("Example")[2]


def test_help_lists_every_command(folder: Folder) -> None:
    for args in ([], ["--help"]):
        ended = folder.call(*args)
        assert (ended.code, ended.err) == (0, "")
        listed = ended.out.partition("Commands:")[2]
        for command in COMMANDS:
            assert re.search(rf"^  {command.split()[0]} ", listed, re.MULTILINE), command


def test_a_process_of_its_own_ends_like_that_too(folder: Folder) -> None:
    assert_one_line(folder.process("crawl", "missing.py"), "no such file: missing.py")
    assert folder.process("--version") == (0, f"shoal {__version__}\n", "")
