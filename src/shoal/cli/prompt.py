"""A Python prompt with a page."""

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
    """The names that the prompt offers, and ways to run code with them."""

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
        """Get a page, which becomes `page`."""
        page = self.names["page"] = self._fetch(url)
        return page

    def view(self) -> str:
        """Open the page in a browser. Returns the path of its file."""
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
        """Run code as if it were typed; print the value of an expression. Returns an exit code."""
        console = _Console(self.names)
        compiled = _as_expression(source)
        if compiled is None:
            return console.run_whole(source)
        try:
            value = eval(compiled, self.names)  # noqa: S307 - the user typed it
        except BaseException as error:
            return _ended_by(error, console)
        _display(value)
        return 0

    def interact(self) -> None:
        """Read, run and print until Ctrl-D. Without a terminal, run stdin line by line."""
        console = _Console(self.names)
        if not sys.stdin.isatty():
            console.interact(banner="", exitmsg="")
            return
        with _kept_history(self.names):
            console.interact(banner=HELP, exitmsg="")


class _Console(code.InteractiveConsole):
    """Python's own console, but text of pages cannot send control sequences to the terminal."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.failed = False
        sys.displayhook = _display

    def run_whole(self, source: str) -> int:
        """Run several statements."""
        self.failed = False
        try:
            compiled = compile(source, "<code>", "exec")
        except SyntaxError as error:  # Without the frame of our own code, which compiles it.
            self.write("".join(traceback.format_exception_only(error)))
            return 1
        self.runcode(compiled)
        return int(self.failed)

    def write(self, data: str) -> None:
        """Print an error. Tracebacks may quote pages, so control characters are removed."""
        self.failed = True
        display.say_lines(data.removesuffix("\n"), err=True)

    def raw_input(self, prompt: str = "") -> str:
        """Read a line; show the prompt on a terminal only."""
        return super().raw_input(prompt if sys.stdin.isatty() else "")

    def showtraceback(self) -> None:
        """Show an error of ours as one line, any other with its traceback."""
        error = sys.exception()
        if isinstance(error, ShoalError):
            self.write(f"{type(error).__name__}: {error}\n")
        elif error is not None:
            # The first frame is our own, which runs the code.
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
    """Completion and a history of lines, if Python has readline."""

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
