"""A browser where a token is needed, below a prefix: people log in, look, steer, and log out."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.hostile import stage
from browser.windows import Watched
from support.processes import Folder
from support.web import serving_web

TOKENS = {"read": "read-token-of-the-test", "admin": "admin-token-of-the-test"}
PREFIX = "/x"


@pytest.mark.rare
def test_who_has_a_token_gets_in_and_may_do_what_its_role_says(
    browser: Browser, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    place = PREFIX + stage(folder, "shop").place
    lines = "".join(f"{role} {token}\n" for role, token in TOKENS.items())
    folder.write("tokens", lines).chmod(0o600)
    with serving_web(folder, "--token-file", "tokens", "--prefix", PREFIX) as server:
        for role, token in TOKENS.items():
            context = browser.new_context()
            window = Watched(context, server.base)
            page = window.open(place)
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(f"**{place}")
            window.has_status("live")
            pause = page.get_by_role("button", name="Pause")
            expect(pause).to_have_count(1 if role == "admin" else 0)
            if role == "admin":
                pause.click()
                expect(page.locator("h1 .badge")).to_have_text("paused")
            page.get_by_role("button", name="Log out").click()
            expect(page.locator("h1")).to_have_text("Log in")
            assert context.cookies() == []
            context.close()
            assert all("status of 401" in said for said in window.wrong)  # The form's own status.
