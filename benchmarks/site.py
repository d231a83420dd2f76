"""A static shop behind nginx, to time crawlers on."""  # noqa: A005 - only `benchmarks.site`

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

PAGES = 20_000
LINKS = 20
"""On each page: one to the index, the others to products, all different."""
CHILDREN = 10
"""Links that lead a level deeper; the rest go anywhere. Five levels reach 20,000 pages."""
OUT = Path(__file__).parent / "out"
VERSION = "1"
"""Raise it when the pages change, so that sites made before are made anew."""

_PARAGRAPH = (
    "<p>It is made in small numbers, and each piece differs a little from the next. The surface "
    "darkens with the years; a drop of <em>oil</em> once a month keeps it supple. We test every "
    "one by hand before it leaves the workshop, and keep a record of the <b>result</b>.</p>\n"
)
_ROW = '<tr><td class="name">Property {n}</td><td class="value">value {n} <i>unit</i></td></tr>\n'
_FILLER = (
    '<table class="properties">\n'
    + "".join(_ROW.format(n=n) for n in range(45))
    + '</table>\n<div class="description">\n'
    + _PARAGRAPH * 21
    + "</div>\n"
)
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
<h1>{title}</h1>
{fields}
{filler}<ul class="links">
{links}</ul>
</body>
</html>
"""
_FIELDS = """<p><span class="sku">S-{number:06}</span>
<span class="price">{price:.2f}</span>
<span class="stock">{stock} in stock</span></p>"""

_NGINX = """
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile {files};
pid {run}/nginx.pid;
error_log {run}/error.log;
events {{ worker_connections 512; }}
http {{
    types {{ text/html html; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    open_file_cache max={cached_files} inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path {run}/body;
    proxy_temp_path {run}/proxy;
    fastcgi_temp_path {run}/fastcgi;
    uwsgi_temp_path {run}/uwsgi;
    scgi_temp_path {run}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        root {root};
    }}
}}
"""


def make_site(pages: int = PAGES, out: Path = OUT) -> Path:
    """The folder with the site: `pages` products and the index. Made once, then used again."""
    folder = out / "site"
    stamp = folder / "stamp"
    wanted = f"{VERSION} {pages}"
    with suppress(FileNotFoundError):
        if stamp.read_text() == wanted:
            return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "product").mkdir(parents=True)
    (folder / "index.html").write_text(_page(0, pages, "Shop", ""))
    for number in range(1, pages + 1):
        (folder / "product" / f"{number}.html").write_text(_product(number, pages))
    stamp.write_text(wanted)
    return folder


def links_of(number: int, pages: int) -> list[int]:
    """The products that a page links to; the index is number 0."""
    first = number * CHILDREN + 1
    children = range(first, min(first + CHILDREN, pages + 1))
    others = Random(number).sample(range(1, pages + 1), min(LINKS - 1, pages))
    return list(dict.fromkeys([*children, *others]))[: LINKS - 1]


def _product(number: int, pages: int) -> str:
    price, stock = number * 37 % 40_000 / 100 + 1, number * 13 % 90
    fields = _FIELDS.format(number=number, price=price, stock=stock)
    return _page(number, pages, f"Product {number}", fields)


def _page(number: int, pages: int, title: str, fields: str) -> str:
    links = '<li><a href="/index.html">Shop</a></li>\n' + "".join(
        f'<li><a href="/product/{linked}.html">Product {linked}</a></li>\n'
        for linked in links_of(number, pages)
    )
    return _PAGE.format(title=title, fields=fields, filler=_FILLER, links=links)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder by a private nginx with one worker process. Gives the base URL."""
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="shoal-nginx-") as run:
        config = Path(run) / "nginx.conf"
        config.write_text(_config(run, port, folder.resolve()))
        command = [_nginx(), "-p", run, "-c", str(config), "-e", f"{run}/error.log"]
        with subprocess.Popen(command) as nginx:
            try:
                _wait_until_open(nginx, port)
                yield f"http://127.0.0.1:{port}"
            finally:
                nginx.terminate()


def _config(run: str, port: int, root: Path) -> str:
    # As root, nginx would give up its rights and then could not read a private folder.
    user = "user root;" if os.geteuid() == 0 else ""
    # Every cached file stays open: half of what may be open is left for connections.
    files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
    return _NGINX.format(
        user=user, run=run, port=port, root=root, files=files, cached_files=files // 2
    )


def _nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not found:
        raise SystemExit("benchmarks: nginx is missing; scripts/servers installs it")
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_open(nginx: subprocess.Popen[bytes], port: int) -> None:
    while nginx.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise SystemExit(f"benchmarks: nginx ended with code {nginx.returncode}")
