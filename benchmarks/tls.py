"""`python -m benchmarks.tls`: measures what TLS costs a crawl.

The bare loop and Shoal crawl over plain HTTP, over TLS on connections that last, and over TLS on
connections that nginx closes after ten requests, where handshakes matter. A private authority signs
the certificate; SSL_CERT_FILE makes the clients trust it. nginx would resume sessions, but neither
client asks for that, nor for HTTP/2.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import crawls
from benchmarks.contest import BARE, in_rounds
from benchmarks.crawls import Run, Runs
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import keep, wide_console
from benchmarks.site import Tls, make_site, served_all
from benchmarks.tables import figures, ratio

SHOAL = "Shoal on Redis"
PLAIN, LASTING, SHORT = "plain", "TLS", "TLS, 10 requests per connection"
REQUESTS_PER_CONNECTION = 10


def make_certificate(folder: Path) -> tuple[Path, Tls]:
    """Make an authority, and a certificate and key for a server on 127.0.0.1."""
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    server = Tls(folder / "server.pem", folder / "server.key")
    _certify(
        *("-subj", "/CN=Benchmark", "-addext", "keyUsage=critical,keyCertSign"),
        *("-keyout", authority_key, "-out", authority),
    )
    _certify(
        *("-subj", "/CN=localhost", "-CA", authority, "-CAkey", authority_key),
        *("-addext", "subjectAltName=IP:127.0.0.1"),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-keyout", server.key, "-out", server.certificate),
    )
    return authority, server


def _certify(*options: str | Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-days", "2", "-noenc"]
    curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*command, *curve, *options], check=True, capture_output=True)


def contestants(bases: dict[str, str], server: RedisServer) -> dict[str, Callable[[], Run]]:
    """Both crawlers, each over all kinds of connections."""
    found: dict[str, Callable[[], Run]] = {}
    for kind, base in bases.items():
        found[f"{BARE}, {kind}"] = partial(crawls.bare, [base])
        found[f"{SHOAL}, {kind}"] = partial(crawls.shoal_on_redis, [base], server)
    return found


def measure(pages: int, rounds: int, console: Console) -> Runs:
    """Run all contestants in turn. All servers are up all the time: idle ones cost nothing."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-")))
        authority, tls = make_certificate(folder)
        os.environ["SSL_CERT_FILE"] = str(authority)
        site = [make_site(pages)]
        served = {
            PLAIN: served_all(site),
            LASTING: served_all(site, tls),
            SHORT: served_all(site, tls, REQUESTS_PER_CONNECTION),
        }
        bases = {kind: stack.enter_context(server)[0] for kind, server in served.items()}
        redis = stack.enter_context(redis_server(durable=True))
        return in_rounds(contestants(bases, redis), rounds, console)


def table_of(runs: Runs) -> Table:
    """A table of medians, and of ratios to the same crawler without TLS in the same round."""
    table = Table("", "pages/s", "CPU s per 1,000 pages", "RSS MB", "of plain", title="TLS")
    table.caption = "CPU and RSS without those of nginx and Redis"
    for name, own in runs.items():
        crawler = name.partition(",")[0]
        table.add_row(name, *figures(own), ratio(own, runs[f"{crawler}, {PLAIN}"]))
    return table


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    console = wide_console()
    runs = measure(args.pages, args.rounds, console)
    table = table_of(runs)
    console.print(table)
    console.print(f"raw figures: {keep('tls', runs, table)}")


if __name__ == "__main__":
    main()
