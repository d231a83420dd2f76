"""No page takes more than a bounded time or memory to parse, whatever is in it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from selectolax.lexbor import LexborHTMLParser

from shoal.core.task import Task
from shoal.errors import OwnFault, Starved, Unparsable
from shoal.spider import markup
from shoal.spider.page import Page
from shoal.spider.trial import Trial
from support.hard_pages import FAMILIES, Family
from support.processes import TESTS, is_alive
from support.until import until_now

SIZES = (12_000, 1_000_000)
PLAIN = b"<p>text</p>" * (1_000_000 // 11)
PLENTY_S = 100.0
"""Of processor time, where it is not time that is to run out."""

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
    monkeypatch.setattr("shoal.spider.trial.SECONDS", 0.1)  # It is our own time that is measured.
    assert seconds_of(lambda: by_css(family(size))) < plain_s * MOST


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("attributes")])
def test_nor_by_xpath(monkeypatch: pytest.MonkeyPatch, plain_s: float, name: str) -> None:
    """Its parser has trouble with those alone."""
    monkeypatch.setattr("shoal.spider.trial.SECONDS", 0.1)
    assert seconds_of(lambda: by_xpath(FAMILIES[name](1_000_000))) < plain_s * MOST


@pytest.mark.parametrize("name", ["end tags that close nothing", "nested lists", "attributes"])
def test_a_page_that_would_take_minutes_is_refused(name: str) -> None:
    with pytest.raises(Unparsable, match="takes too long to parse"):
        by_css(FAMILIES[name](1_000_000))


def test_a_page_that_would_take_gigabytes_is_refused(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a page's usual time, a slow machine may not even have filled the memory it may take."""
    monkeypatch.setattr("shoal.spider.trial.check", partial(trial.check, seconds=PLENTY_S))
    with pytest.raises(Unparsable, match="takes too much memory to parse"):
        by_css(FAMILIES["different formatting in paragraphs"](100_000))


def test_a_large_page_is_only_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []
    monkeypatch.setattr("shoal.spider.trial.check", tried.append)
    text = b"<p>" + b"don't say 'a > b' if a=b " * 100
    page = b'<div class="a" data-x="1 > 2">' + (text + b'<i class="x"></i></p>') * 45 + b"</div>"
    assert len(page) > 2 * markup.SMALL_BYTES
    assert page_of(page).css("div").attrib["data-x"] == "1 > 2"
    assert not tried
    by_css(ODD)
    assert tried == [ODD]


def test_a_look_is_quick_wherever_tags_may_begin(plain_s: float) -> None:
    """Each of thousands of places inside of values is one, and the tag ends far behind them."""
    value = b"<a" * 110 + b" b='%b'" % (b"x" * 3_700)
    page = b"<p%b>" % b"".join(b' a%d="%b"' % (number, value) for number in range(44))
    assert page.count(b"<") < markup.MANY_TAGS
    look_s = min(seconds_of(lambda: markup.is_odd(page)) for _ in range(5))
    assert look_s < plain_s


def test_what_is_long_in_usual_pages_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(page: bytes) -> None:
        raise AssertionError(page[:80])

    monkeypatch.setattr("shoal.spider.trial.check", fail)
    picture = b'<img src="data:image/png;base64,%b">' % (b"iVBORw0KGgo=" * 6_000)
    sizes = b'<img src="a" srcset="%b">' % (b"/img/a-1024x768.jpg 1024w, " * 300)
    state = b"<div data-state='%b'></div>" % (b'{"a": "b > c", "d": [1, 2]}, ' * 500)
    tip = b'<b title="%b"></b>' % (b"<b>x</b> and <i class=y>z</i> " * 50)
    script = b"<script>%b</script>" % (b"for (i=0; i<n; i++) { if (a<b) f('<p>'); }\n" * 200)
    for part in (picture, sizes, state, tip, script):
        page = part + b"<p>text</p>" * 100 + b"x" * markup.SMALL_BYTES
        assert len(page_of(page).css("p")) >= 100


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


def ending(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Let the process end in some way at the first page, whatever that is."""
    script = f"import os, sys; sys.stdin.buffer.read(9); {how}"
    monkeypatch.setattr("shoal.spider.trial._COMMAND", (sys.executable, "-c", script))


def test_a_process_that_is_killed_every_time_may_be_the_pages_doing(
    monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    """By the system, where memory is short."""
    ending(monkeypatch, "os.kill(os.getpid(), 9)")
    with pytest.raises(Starved, match=r"was ended \(exit code -9\)"):
        trial.check(ODD)


def test_a_parser_that_crashes_is_the_pages_doing(
    monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    ending(monkeypatch, "os.kill(os.getpid(), 11)")
    with pytest.raises(Unparsable, match="ends the process that parses it"):
        trial.check(ODD)


def test_a_process_that_gets_no_time_is_no_fault_of_the_page(
    monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    trial.check(ODD)
    os.kill(pid_of(trial), signal.SIGSTOP)
    monkeypatch.setattr("shoal.spider.trial.PATIENCE", 0.1)
    with pytest.raises(Starved, match="no processor time"):
        trial.check(ODD)
    monkeypatch.undo()
    trial.check(ODD)


NO_MORE = """
import os, resource
from shoal.errors import OwnFault
from shoal.spider.trial import Trial
kind = resource.{limit}
before = resource.getrlimit(kind)
resource.setrlimit(kind, ({most}, before[1]))
trial = Trial()
try:
    trial.check(b"<p>")
except OwnFault as error:
    print(error)
resource.setrlimit(kind, before)
trial.check(b"<p>")
"""


def test_a_machine_without_files_to_spare_is_no_fault_of_the_page() -> None:
    script = NO_MORE.format(
        limit="RLIMIT_NOFILE", most="max(map(int, os.listdir('/proc/self/fd')))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE)
    assert done.stdout == b"Too many open files\n"


def test_nor_one_without_a_thread_to_spare(monkeypatch: pytest.MonkeyPatch, trial: Trial) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(OwnFault, match="can't start new thread"):
        trial.check(ODD)
    monkeypatch.undo()
    trial.check(ODD)


def test_where_memory_has_a_limit_pages_are_tried_within_it() -> None:
    script = """
import resource
from shoal.spider import trial
resource.setrlimit(resource.RLIMIT_AS, (6 * 1024**3, 6 * 1024**3))
for _ in range(2):
    trial.check(b"<p>")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_answer_is_never_taken_for_that_to_another_page(trial: Trial) -> None:
    trial.check(ODD)
    pid = pid_of(trial)
    os.kill(pid, signal.SIGSTOP)

    def interrupted() -> None:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        trial.check(ODD)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(Unparsable, match="memory"):
        trial.check(FAMILIES["different formatting in paragraphs"](100_000), seconds=PLENTY_S)


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
from shoal.spider import trial
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
from shoal.spider import trial
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
        if not markup._may_have_endless_tag(html):
            passed += 1
            elements = LexborHTMLParser(html).css("*")
            assert max(len(element.attributes) for element in elements) <= 50, html
    assert passed > 100
