"""`shoal try` with what a crawl has: exits and accounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.banning_site import BanningSite, assert_only_by
from support.exit_crawls import ExitFolder, proxies
from support.session_crawls import ACCOUNTS, SessionFolder
from support.session_site import SessionSite
from support.sites import serving


@pytest.mark.rare
def test_a_page_by_an_exit(tmp_path: Path) -> None:
    folder = ExitFolder(tmp_path)
    with serving(BanningSite(3)) as site, proxies(folder.path, 2) as servers:
        folder.put_pool("dc", [server.url for server in servers])
        folder.put_spider(site.urls)
        ended = folder.shoal("try", "links.py", "--json")
        assert ended.code == 0, ended
        assert ended.json()["status"] == 200
        assert_only_by(site, [server.source for server in servers])
        for server in servers:
            server.kill()
        gone = folder.shoal("try", "links.py")
    assert gone.code == 1
    assert (gone.err + gone.out).strip()
    assert not list(folder.path.glob("*.db"))


def test_a_page_with_an_account(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_group(site)
        folder.put_shop(site)
        ended = folder.shoal("try", "shop.py", "--json")
        assert ended.code == 0, ended
        assert len(site.door.logins) == 1
        (account,) = site.door.logins
        url = ended.json()["tasks"][0]["url"]
        product = folder.shoal("try", "shop.py", url, "--handler", "product", "--json").json()
    assert product["items"][0]["item"]["account"] in ACCOUNTS
    assert account in ACCOUNTS
    for password in ACCOUNTS.values():
        assert password not in ended.out + ended.err
