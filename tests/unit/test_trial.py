"""No page takes more than a bounded time or memory to parse, whatever is in it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from selectolax.lexbor import LexborHTMLParser

from shoal import markup
from shoal.errors import Unparsable
from shoal.page import Page
from shoal.task import Task
from shoal.trial import Trial
from support.hard_pages import FAMILIES, Family
from support.processes import TESTS, is_alive
from support.until import until_now

SIZES = (12_000, 1_000_000)
PLAIN = b"<p>text</p>" * (1_000_000 // 11)
MOST = 100
"""Any page may take as long as so many plain ones of a megabyte. What is quadratic takes hours."""

FEW_TAGS = b"<p>x</p>"
ODD = FEW_TAGS * markup.MANY_TAGS


@pytest.fixture
def trial() -> Iterator[Trial]:
    trial = Trial()
    yield trial
    trial.close()


def pid_of(trial: Trial) -> int:
    assert trial._process is not None
    return trial._process.pid


def page_of(body: bytes) -> Page:
    return Page(
        url="https://shop.example/",
        status=200,
        headers={"Content-Type": "text/html; charset=utf-8"},
        body=body,
        task=Task(url="https://shop.example/"),
        fingerprint=b"12345678",
    )


def by_css(body: bytes) -> None:
    page_of(body).css("main a").get()


def by_xpath(body: bytes) -> None:
    page_of(body).xpath("//main//a").get()


def seconds_of(action: Callable[[], object]) -> float:
    """The processor time that this process needs."""
    before = time.process_time()
    with suppress(Unparsable):
        action()
    return time.process_time() - before


@pytest.fixture(scope="module")
def plain_s() -> float:
    """How long a plain page of a megabyte takes."""
    return min(seconds_of(lambda: LexborHTMLParser(PLAIN)) for _ in range(5))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_no_page_takes_much_time(
    monkeypatch: pytest.MonkeyPatch, plain_s: float, family: Family, size: int
) -> None:
    monkeypatch.setattr("shoal.trial.SECONDS", 0.1)  # It is our own time that is measured.
    assert seconds_of(lambda: by_css(family(size))) < plain_s * MOST


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("attributes")])
def test_nor_by_xpath(monkeypatch: pytest.MonkeyPatch, plain_s: float, name: str) -> None:
    """Its parser has trouble with those alone."""
    monkeypatch.setattr("shoal.trial.SECONDS", 0.1)
    assert seconds_of(lambda: by_xpath(FAMILIES[name](1_000_000))) < plain_s * MOST


@pytest.mark.parametrize("name", ["end tags that close nothing", "nested lists", "attributes"])
def test_a_page_that_would_take_minutes_is_refused(name: str) -> None:
    with pytest.raises(Unparsable, match="takes too long to parse"):
        by_css(FAMILIES[name](1_000_000))


def test_a_page_that_would_take_gigabytes_is_refused() -> None:
    with pytest.raises(Unparsable, match="takes too much memory to parse"):
        by_css(FAMILIES["different formatting in paragraphs"](100_000))


def test_a_large_page_is_only_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []
    monkeypatch.setattr("shoal.trial.check", tried.append)
    text = b"<p>" + b"don't say 'a > b' if a=b " * 100
    page = b'<div class="a" data-x="1 > 2">' + (text + b'<i class="x"></i></p>') * 45 + b"</div>"
    assert len(page) > 2 * markup.SMALL_BYTES
    assert page_of(page).css("div").attrib["data-x"] == "1 > 2"
    assert not tried
    by_css(ODD)
    assert tried == [ODD]


def test_the_process_serves_many_pages(trial: Trial) -> None:
    trial.check(ODD)
    pid = pid_of(trial)
    trial.check(b"")
    trial.check(FEW_TAGS)
    assert pid_of(trial) == pid


def test_after_a_page_that_ended_it_there_is_another(trial: Trial) -> None:
    with pytest.raises(Unparsable):
        trial.check(FAMILIES["attributes"](1_000_000))
    trial.check(ODD)


def test_a_process_that_somebody_ended_is_no_fault_of_the_page(trial: Trial) -> None:
    trial.check(ODD)
    pid = pid_of(trial)
    os.kill(pid, signal.SIGTERM)
    until_now("its end", lambda: not is_alive(pid))
    trial.check(ODD)


def test_it_is_no_fault_of_the_page_that_ctrl_c_was_pressed(trial: Trial) -> None:
    trial.check(ODD)
    pid = pid_of(trial)
    os.kill(pid, signal.SIGINT)
    trial.check(ODD)
    assert pid_of(trial) == pid


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit()", "os.kill(os.getpid(), 9)"])
def test_it_ends_with_the_process_that_needs_it(end: str) -> None:
    script = f"""
import os, sys
from shoal import trial
from support.processes import children_of
trial.check(b"<p>")
print(children_of(os.getpid())[0], flush=True)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS,
    )
    assert not done.stderr
    until_now("its end", lambda: not is_alive(int(done.stdout)))


def test_a_fork_has_a_process_of_its_own() -> None:
    script = """
import os
from shoal import trial
trial.check(b"<p>")
if (pid := os.fork()) == 0:
    for _ in range(100):
        trial.check(b"<p>")
    os._exit(0)
for _ in range(100):
    trial.check(b"<p>")
assert os.waitpid(pid, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_tag_that_passes_for_sane_has_many_attributes() -> None:
    rnd = random.Random(1)
    bits = rb"""a b = " ' > < / ! \ &quot; <a =" =' " ' >" ="> </a>""".split(b" ")
    bits += [b" ", b"\n", b"\r", b"\v", b"\f", b"\t", b"\0", b"\xff", b"= ", b'" ', b"' "]
    passed = 0
    for _ in range(5_000):
        odd = rnd.choice([0.02, 0.1, 0.4])
        parts = [
            rnd.choice(bits) if rnd.random() < odd else b" n%d%b" % (n, rnd.choice([b"", b"=x"]))
            for n in range(rnd.randint(40, 100))
        ]
        html = b"<x%b>" % b"".join(parts)
        if markup._ENDLESS_TAG.search(html) is None:
            passed += 1
            elements = LexborHTMLParser(html).css("*")
            assert max(len(element.attributes) for element in elements) <= 50, html
    assert passed > 100
