"""The command line: one module per command, loaded when needed.

A command parses its arguments and calls one function. Imports everything; nothing imports it.
"""

from __future__ import annotations

import os
import sys
import traceback

import typer

from shoal.cli import display
from shoal.cli.on_demand import Commands
from shoal.cli.options import show_help
from shoal.core import plaintext
from shoal.errors import ConfigError, ShoalError, StorageAway, UnknownCrawl, unreachable
from shoal.version import __version__

app = typer.Typer(
    name="shoal",
    cls=Commands,
    help="Turn one scraper into a fleet: nothing lost, nothing twice, no site hit too hard.",
    epilog="Start with: shoal demo",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line. Every known error is printed as one line."""
    try:
        code = app(prog_name=app.info.name, standalone_mode=False)
    except typer.TyperException as error:
        _fail(2, error.format_message())
    except (ConfigError, UnknownCrawl) as error:
        _fail(2, str(error))
    except StorageAway as error:
        _fail(2, str(unreachable(error)))
    except ShoalError as error:
        _fail(1, str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has closed it.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the interpreter's last flush
        sys.exit(1)
    except Exception:  # A fault. It may quote a page, so Python must not print it unfiltered.
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
