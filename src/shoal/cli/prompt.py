"""A Python prompt with a page at hand."""

from __future__ import annotations

import code
import os
import sys
import traceback
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType
from typing import Any

from shoal.cli import display
from shoal.errors import ShoalError
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.tracebacks import users_lines

Fetch = Callable[[str], Page]

MAX_HISTORY = 1_000
HELP = """\
  page        the page: page.css("h1::text").get(), page.follow_all("a"), page.json()
  fetch(url)  get another page, which becomes `page`
  view()      open the page in a browser
  spider      the spider: list(spider.product(page))
Ctrl-D exits."""


class Prompt:
    """What is at hand there, and how it is run."""

    def __init__(self, page: Page | None, spider: Spider, fetch: Fetch) -> None:
        self._fetch = fetch
        self.names: dict[str, Any] = {
            "__name__": "__console__",
            "__doc__": None,
            "page": page,
            "spider": spider,
            "fetch": self.fetch,
            "view": self.view,
        }

    def fetch(self, url: str) -> Page:
        """Get a page, which is `page` from now on."""
        page = self.names["page"] = self._fetch(url)
        return page

    def view(self) -> str:
        """Open the page in a browser. Returns the file that it is in."""
        page: Page | None = self.names["page"]
        if page is None:
            raise ShoalError("there is no page: fetch(url) gets one")
        with NamedTemporaryFile(prefix="shoal-", suffix=".html", delete=False) as file:
            file.write(page.body)
        path = Path(file.name)
        if _has_display():
            with suppress(webbrowser.Error):
                webbrowser.open(path.as_uri())
        return str(path)

    def run(self, source: str) -> int:
        """Run code as if it were typed: the value of an expression is printed. Returns an exit
        code."""
        console = _Console(self.names)
        compiled = _as_expression(source)
        if compiled is None:
            return console.run_whole(source)
        try:
            value = eval(compiled, self.names)  # noqa: S307 - it is what the user has typed
        except BaseException as error:
            return _ended_by(error, console)
        _display(value)
        return 0

    def interact(self) -> None:
        """Ask, run, print, until Ctrl-D. Without a terminal, what comes is run line by line."""
        console = _Console(self.names)
        if not sys.stdin.isatty():
            console.interact(banner="", exitmsg="")
            return
        with _kept_history(self.names):
            console.interact(banner=HELP, exitmsg="")


class _Console(code.InteractiveConsole):
    """Python's own, which lets nothing of a page reach the terminal as an order."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.failed = False
        sys.displayhook = _display

    def run_whole(self, source: str) -> int:
        """Run several statements."""
        self.failed = False
        try:
            compiled = compile(source, "<code>", "exec")
        except SyntaxError as error:  # Without our own line, which compiles it.
            self.write("".join(traceback.format_exception_only(error)))
            return 1
        self.runcode(compiled)
        return int(self.failed)

    def write(self, data: str) -> None:
        """Tracebacks quote pages. An error of ours is one line."""
        self.failed = True
        display.say_lines(data.removesuffix("\n"), err=True)

    def raw_input(self, prompt: str = "") -> str:
        """Prompts are for people."""
        return super().raw_input(prompt if sys.stdin.isatty() else "")

    def showtraceback(self) -> None:
        """One line for what we know of."""
        error = sys.exception()
        if isinstance(error, ShoalError):
            self.write(f"{type(error).__name__}: {error}\n")
        elif error is not None:
            # The first frame is the one that runs the code.
            users = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            self.write(users_lines("".join(traceback.format_exception(users))) + "\n")


def _as_expression(source: str) -> CodeType | None:
    try:
        return compile(source, "<code>", "eval")
    except SyntaxError:
        return None


def _ended_by(error: BaseException, console: _Console) -> int:
    if isinstance(error, SystemExit | KeyboardInterrupt):
        raise error
    console.showtraceback()
    return 1


def _display(value: Any) -> None:
    if value is not None:
        display.say_lines(repr(value))


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class _kept_history:  # noqa: N801 - used as a function
    """Completion, and the lines of earlier prompts, where Python has readline."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._file = Path(base) / "shoal" / "history"

    def __enter__(self) -> None:
        with suppress(ImportError):
            import readline
            import rlcompleter

            readline.set_completer(rlcompleter.Completer(self._names).complete)
            readline.parse_and_bind("tab: complete")
            readline.set_history_length(MAX_HISTORY)
            with suppress(OSError):
                readline.read_history_file(self._file)

    def __exit__(self, *_: object) -> None:
        with suppress(ImportError, OSError):
            import readline

            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            readline.write_history_file(self._file)
