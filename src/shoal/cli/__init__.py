"""The command line: one module for each command. Parse to values, call one function.
Imports everything; nothing imports it.
"""

from __future__ import annotations

import os
import sys
import traceback

import typer

from shoal.cli import display
from shoal.cli.commands import (
    alerts,
    control,
    crawl,
    dead,
    demo,
    drain,
    explain,
    export,
    feed,
    merge,
    proxies,
    rejected,
    reparse,
    results,
    schedule,
    scrapy,
    seed,
    serve,
    sessions,
    simulate,
    status,
    worker,
)
from shoal.cli.options import show_help
from shoal.core import plaintext
from shoal.errors import ConfigError, ShoalError, UnknownCrawl
from shoal.version import __version__

app = typer.Typer(
    name="shoal",
    help="Turn one scraper into a fleet: nothing lost, nothing twice, no site hit too hard.",
    epilog="Start with: shoal demo",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("crawl")(crawl.crawl)
app.command("worker")(worker.worker)
app.command("seed")(seed.seed)
app.command("feed")(feed.feed)
app.command("serve")(serve.serve)
app.add_typer(schedule.app, name="schedule")
app.add_typer(alerts.app, name="alerts")
app.command("status")(status.status)
app.command("explain")(explain.explain)
app.add_typer(dead.app, name="dead")
app.add_typer(rejected.app, name="rejected")
app.command("pause")(control.pause)
app.command("resume")(control.resume)
app.command("cancel")(control.cancel)
app.command("export")(export.export)
app.command("merge")(merge.merge)
app.add_typer(results.app, name="results")
app.command("reparse")(reparse.reparse)
app.command("drain")(drain.drain)
proxies.app.command("simulate")(simulate.simulate)
app.add_typer(proxies.app, name="proxies")
app.add_typer(sessions.app, name="sessions")
app.add_typer(scrapy.app, name="scrapy")
app.command("demo")(demo.demo)


def main() -> None:
    """Run the command line; every error we know of is one line."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        _fail(2, error.format_message())
    except (ConfigError, UnknownCrawl) as error:
        _fail(2, str(error))
    except ShoalError as error:
        _fail(1, str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # Who reads our output has seen enough.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the interpreter's last flush
        sys.exit(1)
    except Exception:  # A fault. Python would print it as it is, and it may quote a page.
        sys.stderr.write(plaintext.lines(traceback.format_exc()))
        sys.exit(1)
    sys.exit(code)


def _fail(code: int, message: str) -> None:
    first, *more = message.strip().splitlines() or [""]
    display.say(f"shoal: {' '.join([first, *(line.strip() for line in more)])}", err=True)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        display.say(f"shoal {__version__}")
        raise typer.Exit
    show_help(context)
