"""Pages for a prompt: fetched as a crawl would, or read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from shoal.config import Settings
from shoal.core.task import Task
from shoal.errors import ConfigError, FetchError
from shoal.fleet.target import create
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.one_page import try_page

MAX_FILE_BYTES = 100 * 2**20
_ANYTHING = (*range(400, 418), 422, 423, 425, 426, 429, 451, *range(500, 505))
"""All statuses: a page is shown whatever its status."""
_HANDLER = "shown_at_the_prompt"


async def fetched_page(spider: type[Spider], settings: Settings, url: str) -> Page:
    """The page at an address, fetched with the settings and hooks of this spider. Its handlers do
    not run. Raises FetchError."""
    pages: list[Page] = []

    def keep(self: Spider, page: Page) -> None:
        pages.append(page)

    members: dict[str, Any] = {"name": spider.name, _HANDLER: keep}
    showing = create(
        type(spider.__name__, (spider,), members), settings.plugins, settings.rules.args
    )
    task = Task(url=url, job_type=_HANDLER, accept=_ANYTHING)
    tried = await try_page(showing, settings, task)
    if not pages:
        raise FetchError(f"{url}: {tried.report.outcome.reason}")
    page = pages[0]
    page.task = replace(page.task, job_type="parse", accept=())
    return page


def page_of_file(file: Path) -> Page:
    """A page that was saved to a file. Raises ConfigError."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{file} is larger than {MAX_FILE_BYTES // 2**20} MB")
        body = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    kind = "application/json" if file.suffix == ".json" else "text/html"
    # It has no address of its own. A reserved one makes its links absolute.
    return Page.from_html(f"http://file.invalid/{file.name}", body, headers={"Content-Type": kind})
