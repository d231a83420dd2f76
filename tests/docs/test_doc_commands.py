"""Every command of the documentation is run, in the order of its page, and prints what it says."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from shoal.cli.display import progress_line
from shoal.config import Rules
from shoal.frontier.values import CrawlState, Stats
from support.crashes import has_crashed
from support.docs import Reader
from support.makefile import extras, targets
from support.markdown import PAGES, README, ROOT, SHELL, Block, Command, blocks, commands, name_of
from support.operators import is_operators, unknown_to_operators
from support.server_process import program
from support.session_site import SessionSite

PLACEHOLDERS = {
    "URL": "https://shop.example/product/1",
    "URL...": "https://shop.example/product/2",
}
SHELL_WORDS = (
    *("echo", "printf", "cat", "head", "chmod"),
    *("curl", "redis-cli", "psql", "scrapy", "rq"),
)
RUNS_PYTHON = set((ROOT / "docs/guides").glob("*.md")) - {ROOT / "docs/guides/spiders.md"}
"""That one has tests of its own: most of its blocks are parts of spiders."""
HAS_LOGIN = ROOT / "docs/guides/sessions.md"
"""Its shop lets in only those who have an account."""
HAS_CLIENTS = ROOT / "docs/guides/api.md"
PROGRAMS = {
    "php": ("php", "client.php"),
    "javascript": ("node", "client.mjs"),
    "go": ("go", "run", "client.go"),
}
"""What runs a block in its language, and as which file."""
LARGE = "go"
"""This is several hundred megabytes, so its client is tried where somebody has it."""
READ_FIRST = {README, ROOT / "docs/guides/running.md", ROOT / "docs/guides/redis.md"}
RUNS_SQL = ROOT / "docs/guides/results.md"

_EXIT_CODE = re.compile(r"exit code (\d+)")
_BOX = re.compile(r"[─-╿]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?")
"""Runs are called after one, which has no seconds if they are 0."""
_DURATION = re.compile(r"\b\d+(?:\.\d+)?s\b|\b\d+m \d+s\b|\b\d+h \d+m\b|\b\d+d \d+h\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_EXTRA = re.compile(r"\[([a-z0-9,]+)\]")
_FILE_NAME = re.compile(r"# (\w+\.(?:py|cfg|toml))\n")

PROGRESS = progress_line(
    Stats(crawl="shop", state=CrawlState.RUNNING, rules=Rules(), created_at=0.0, pages_per_s=1.0)
)


def first_or_rare(page: Path) -> ParameterSet:
    """What newcomers read first is tried with every change, the other pages by make test-all."""
    return pytest.param(
        page, id=name_of(page), marks=() if page in READ_FIRST else pytest.mark.rare
    )


@pytest.mark.parametrize("page", [first_or_rare(page) for page in PAGES])
def test_commands_do_what_the_page_says(
    page: Path, reader: Reader, closed_shop: SessionSite
) -> None:
    if page == HAS_LOGIN:
        reader.shop = closed_shop.url.removesuffix("/")
    printed = ""
    for block in blocks(page):
        if block.language in SHELL:
            printed = "".join(try_command(reader, command) for command in commands(block))
        elif block.language == "text":
            missing = lines_not_in(block, f"{printed}\n{PROGRESS}")
            assert not missing, f"{page.name}:{block.line}: not printed: {missing}\nbut:\n{printed}"
        elif block.language == "toml" and _FILE_NAME.match(block.text):
            write_file(reader, block)
        elif block.language == "ini" or (block.language == "python" and page in RUNS_PYTHON):
            try_python(reader, block)
        elif block.language in PROGRAMS and page == HAS_CLIENTS:
            try_client(reader, block)
        elif block.language == "sql" and page == RUNS_SQL:
            ended = reader.run_sql(block.text)
            assert ended.code == 0, f"{page.name}:{block.line}: {ended.err}"


def try_client(reader: Reader, block: Block) -> None:
    """Run a program in another language."""
    command, *options, name = PROGRAMS[block.language]
    if command == LARGE and shutil.which(command) is None:
        return
    reader.write(name, block.text)
    ended = reader.run(program(command), *options, name)
    assert ended.code == 0, f"{command}: {ended}"


def try_python(reader: Reader, block: Block) -> None:
    """Write a block that is named as a file, run any other."""
    if write_file(reader, block):
        return
    ended = reader.run(sys.executable, "-W", "error", "-c", reader.localised(block.text))
    assert ended.code == 0, ended.err


def write_file(reader: Reader, block: Block) -> bool:
    """Write a block that is named as a file. False if it is not."""
    name = _FILE_NAME.match(block.text)
    if name:
        reader.write(name[1], block.text)
    return bool(name)


def try_command(reader: Reader, command: Command) -> str:
    """Run a command of Shoal, or check that one of another program makes sense."""
    name, _, rest = command.text.partition(" ")
    if is_operators(command.text):
        assert not unknown_to_operators(command.text), command
    elif name == "make":
        assert set(rest.split()) <= targets(), command
    elif name == "pip":
        assert {name for found in _EXTRA.findall(rest) for name in found.split(",")} <= extras()
    elif name == "shoal" or name in SHELL_WORDS:
        ended = reader.follow(command._replace(text=without_placeholders(command.text)))
        assert ended.code in allowed_codes(command), f"{command}: {ended}"
        assert not has_crashed(ended.err), ended.err
        return ended.out + ended.err
    else:
        pytest.fail(f"no test knows how to run {command.text!r}; is it output? mark it as text")
    return ""


def without_placeholders(text: str) -> str:
    return " ".join(PLACEHOLDERS.get(word, word) for word in text.split(" "))


def allowed_codes(command: Command) -> set[int]:
    """What the page says; else success, which for a crawl of the shop includes dead tasks."""
    said = _EXIT_CODE.search(command.note)
    if said:
        return {int(said[1])}
    if "--watch" in command.text:
        return {130}
    return {0, 3} if command.text.startswith("shoal crawl") else {0}


def lines_not_in(block: Block, printed: str) -> list[str]:
    """The lines of a page that a command did not print. Numbers may differ; `...` is anything."""
    actual = [comparable(line) for line in printed.splitlines()]
    return [
        line
        for line in block.text.splitlines()
        if not any(re.fullmatch(pattern(line), found) for found in actual)
    ]


def pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in comparable(line).split("..."))


def comparable(line: str) -> str:
    for kind, shown in ((_BOX, " "), (_MOMENT, "0T0"), (_DURATION, "0s"), (_NUMBER, "0")):
        line = kind.sub(shown, line)
    return " ".join(line.split())


def test_the_readme_has_the_spider_that_its_commands_run() -> None:
    spider = next(block for block in blocks(README) if block.language == "python")

    compile(spider.text, "README.md", "exec")


def test_output_that_is_not_printed_is_found() -> None:
    block = Block("text", "│ state │ running │\n12 items in ...\n...\n", 1)

    assert lines_not_in(block, "│ state   │ running │\n7 items in x.csv\n") == []
    assert lines_not_in(block, "│ state   │ paused │\n7 items in x.csv\n") == [
        "│ state │ running │"
    ]


def test_a_run_that_began_with_a_minute_is_called_as_the_page_says() -> None:
    block = Block("text", "shop@2026-11-15T14:03:22: begins\n", 1)

    assert lines_not_in(block, "shop@2026-11-16T03:34: begins\n") == []


def test_unknown_programs_and_wrong_exit_codes_are_found(tmp_path: Path, shop: str) -> None:
    reader = Reader(tmp_path, shop)

    wrong = ("wget https://shop.example", "make nonsense", "pip install '.[nonsense]'")
    for text in (*wrong, "kubectl apply -k deploy/nonsense", "systemctl start shoal-nonsense"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            try_command(reader, Command(text, ""))
    for command in (Command("shoal status nothing", ""), Command("shoal --version", "exit code 2")):
        with pytest.raises(AssertionError):
            try_command(reader, command)
    ended = reader.follow(Command("shoal status nothing", ""))
    assert ended.code == 2
    assert ended.err == "shoal: no crawls here: shoal.db does not exist (see --frontier)\n"
