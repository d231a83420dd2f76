"""shoal serve: runs the coordinator and the web server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.alerts.watcher import Watcher
from shoal.cli.examples import examples
from shoal.cli.options import settings_from, with_settings
from shoal.cli.services import run_service
from shoal.coordinator.coordinator import Coordinator
from shoal.feeds.service import Feeds
from shoal.frontier.port import Frontier
from shoal.runtime.services import Services

Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        envvar="SHOAL_LISTEN",
        metavar="HOST:PORT",
        help="Address of the dashboard and the API. Without a token, on this machine only."
        " [default: 127.0.0.1:7350]",
        show_envvar=False,
    ),
]
NoWeb = Annotated[bool, typer.Option("--no-web", help="Run without dashboard and API.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="SHOAL_TOKEN_FILE",
        metavar="FILE",
        help="Access tokens, one per line: `read TOKEN` may look, `admin TOKEN` may do everything."
        " SHOAL_TOKEN is one more.",
        show_envvar=False,
    ),
]
Prefix = Annotated[
    str,
    typer.Option(
        "--prefix",
        envvar="SHOAL_PREFIX",
        metavar="/PATH",
        help="The path under which a reverse proxy serves it.",
        show_envvar=False,
        show_default=False,
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Host name to accept, besides localhost and IP addresses. May be repeated.",
    ),
]


@with_settings("frontier", "results", "archive", "json_logs")
@examples(
    "shoal serve",
    "shoal serve --frontier redis://queue-host",
    "shoal serve --listen 0.0.0.0:7350 --token-file tokens --allow-host crawls.example",
)
def serve(
    options: dict[str, Any],
    listen: Listen = None,
    no_web: NoWeb = False,
    token_file: TokenFile = None,
    prefix: Prefix = "",
    allow_host: AllowHost = None,
) -> None:
    """Run the coordinator and the dashboard.

    A coordinator begins the runs of shoal.toml's schedules when they are due, watches them, and
    adds tasks from feeds. It never scrapes: `shoal worker` without a target does that, on any
    number of machines. You may run several coordinators: one leads, and if it dies, another takes
    over within seconds. shoal.toml is read again when it changes. SIGTERM and Ctrl-C stop it.

    The dashboard shows every crawl of the frontier, including those that no schedule began. The API
    is described at /api/openapi.json. With --archive, both also give the raw pages of crawls.

    The leader also watches all crawls, and sends alerts if something is wrong: [alerts] in
    shoal.toml says when, and to whom.

    A schedule in shoal.toml:

    \b
      [[schedule]]
      name = "shop"
      target = "shop.py:Shop"
      cron = "0 3 * * *"
      timezone = "Europe/Berlin"
      window = "6h"

    A feed adds tasks from a queue to a crawl, as `shoal feed` does, for as long as this runs:

    \b
      [[feed]]
      crawl = "shop"
      address = "amqp://user:secret@rabbit/urls"
    """

    # The web reads from the archive. Where runs store their pages, their own settings say.
    of_runs = {name: value for name, value in options.items() if name != "archive"}

    def services(frontier: Frontier) -> Services:
        coordinator = Coordinator(frontier, of_runs, duties=[Watcher(frontier)])
        if no_web:
            return Services(coordinator, Feeds(frontier))
        from shoal.web.server import WebOptions, WebServer  # Loaded only here, where it is used.

        web = WebOptions(
            listen=listen, token_file=token_file, prefix=prefix, allow_hosts=allow_host or ()
        )
        return Services(coordinator, Feeds(frontier), WebServer(settings_from(options), web))

    run_service(options, services)
