"""Pictures of the dashboard. docs/images has the wide and light ones; look at the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from browser.fleet import CONFIG, PRICES, Fleet
from browser.windows import PHONE, WIDE, Watched
from support.processes import Folder
from support.sites import serving
from support.web import Web, serving_web

PLACES = {"dashboard-crawls": "/", "dashboard-crawl": f"/crawls/{PRICES}?span=1h"}
PAGES, MINUTES = 6000, 70
MAX_BYTES = 150_000
FOLDER = os.environ.get("SHOAL_TEST_PICTURES", "")

pytestmark = [
    pytest.mark.rare,
    pytest.mark.skipif(not FOLDER, reason="SHOAL_TEST_PICTURES names no folder for them"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = Folder(tmp_path_factory.mktemp("pictures"))
    folder.write("shoal.toml", CONFIG)
    fleet = Fleet.of(folder, pages=PAGES, minutes=MINUTES)
    with serving_web(folder) as server, serving(fleet):
        yield server


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_pictures(
    browser: Browser, served: Web, width: int, scheme: Literal["light", "dark"]
) -> None:
    size = {"width": width, "height": 720}
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    window = Watched(context, served.base)
    for name, path in PLACES.items():
        window.open(path)
        window.look_again()
        picture = Path(FOLDER) / f"{name}-{width}-{scheme}.png"
        window.page.screenshot(path=picture)
        assert picture.stat().st_size < MAX_BYTES
    context.close()
    assert window.wrong == []
