"""Makes a static shop and serves it with nginx."""  # noqa: A005 - only `benchmarks.site`

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec

PAGES = 20_000
LINKS = 20
"""Links on each page: one to the index, the others to different products."""
CHILDREN = 10
"""Links that lead a level deeper; the rest are random. Five levels reach 20,000 pages."""
OUT = Path(__file__).parent / "out"
VERSION = "2"
"""Raise it when the pages change, so that sites of older versions are made again."""

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
_FIELDS = """<p><span class="sku">S-{shop:02}-{number:06}</span>
<span class="price">{price:.2f}</span>
<span class="stock">{stock} in stock</span></p>"""

_NGINX = """
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile {files};
pid {run}/nginx.pid;
error_log {run}/error.log;
events {{ worker_connections 4096; }}
http {{
    types {{ text/html html; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests {requests};
    keepalive_timeout 600s;
    open_file_cache max={cached_files} inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path {run}/body;
    proxy_temp_path {run}/proxy;
    fastcgi_temp_path {run}/fastcgi;
    uwsgi_temp_path {run}/uwsgi;
    scgi_temp_path {run}/scgi;{tls}
{servers}
}}
"""
_SERVER = "    server {{ listen 127.0.0.1:{port} backlog=1024{tls}; root {root}; }}"
_TLS = """
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:tls:8m;
"""


class Tls(msgspec.Struct, frozen=True):
    """The files with which a server authenticates itself."""

    certificate: Path
    key: Path


def make_site(pages: int = PAGES, shop: int = 0) -> Path:
    """Make a site with `pages` products and an index, if there is none yet, and return its folder.

    Shops of the same size but another number have other products.
    """
    folder = OUT / f"site-{pages}" / f"{shop}"
    stamp = folder / "stamp"
    with suppress(FileNotFoundError):
        if stamp.read_text() == VERSION:
            return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "product").mkdir(parents=True)
    (folder / "index.html").write_text(_page(0, pages, "Shop", ""))
    for number in range(1, pages + 1):
        (folder / "product" / f"{number}.html").write_text(_product(number, pages, shop))
    stamp.write_text(VERSION)
    return folder


def links_of(number: int, pages: int) -> list[int]:
    """The products that a page links to. The index page is number 0."""
    first = number * CHILDREN + 1
    children = range(first, min(first + CHILDREN, pages + 1))
    others = Random(number).sample(range(1, pages + 1), min(LINKS - 1, pages))
    return list(dict.fromkeys([*children, *others]))[: LINKS - 1]


def _product(number: int, pages: int, shop: int) -> str:
    price, stock = number * 37 % 40_000 / 100 + 1, number * 13 % 90
    fields = _FIELDS.format(shop=shop, number=number, price=price, stock=stock)
    return _page(number, pages, f"Product {number}", fields)


def _page(number: int, pages: int, title: str, fields: str) -> str:
    links = '<li><a href="/index.html">Shop</a></li>\n' + "".join(
        f'<li><a href="/product/{linked}.html">Product {linked}</a></li>\n'
        for linked in links_of(number, pages)
    )
    return _PAGE.format(title=title, fields=fields, filler=_FILLER, links=links)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder with a private nginx with one worker process. Gives the base URL."""
    with served_all([folder]) as (base,):
        yield base


@contextmanager
def served_all(
    folders: Sequence[Path], tls: Tls | None = None, requests_per_connection: int = 10**9
) -> Iterator[list[str]]:
    """Serve each folder on a port of its own, all with one nginx. Gives the base URLs."""
    ports = [free_port() for _ in folders]
    with tempfile.TemporaryDirectory(prefix="shoal-nginx-") as run:
        config = Path(run) / "nginx.conf"
        config.write_text(_config(run, folders, ports, tls, requests_per_connection))
        command = [_nginx(), "-p", run, "-c", str(config), "-e", f"{run}/error.log"]
        with subprocess.Popen(command) as nginx:
            try:
                for port in ports:
                    _wait_until_open(nginx, port)
                yield [f"{'https' if tls else 'http'}://127.0.0.1:{port}" for port in ports]
            finally:
                nginx.terminate()


def _config(
    run: str,
    folders: Sequence[Path],
    ports: Sequence[int],
    tls: Tls | None,
    requests_per_connection: int,
) -> str:
    # Every cached file stays open, so the cache gets half of the limit of open files.
    files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
    servers = [
        _SERVER.format(port=port, root=folder.resolve(), tls=" ssl" if tls else "")
        for port, folder in zip(ports, folders, strict=True)
    ]
    return _NGINX.format(
        # Started as root, nginx would drop its rights and then could not read a private folder.
        user="user root;" if os.geteuid() == 0 else "",
        run=run,
        files=files,
        cached_files=files // 2,
        requests=requests_per_connection,
        tls=_TLS.format(certificate=tls.certificate, key=tls.key) if tls else "",
        servers="\n".join(servers),
    )


def _nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not found:
        raise SystemExit("benchmarks: nginx is missing; scripts/servers installs it")
    return found


def free_port() -> int:
    """A port that is not in use."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_open(nginx: subprocess.Popen[bytes], port: int) -> None:
    while nginx.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise SystemExit(f"benchmarks: nginx ended with code {nginx.returncode}")
