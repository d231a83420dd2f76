"""What the one line does."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from shoal.scrapy import Addon
from shoal.scrapy.addon import SCHEDULER


@pytest.mark.parametrize(
    ("priority", "winner"), [("project", SCHEDULER), ("cmdline", "of.the.user.Scheduler")]
)
def test_it_is_stronger_than_the_project_and_weaker_than_the_command_line(
    priority: str, winner: str
) -> None:
    settings = Settings()
    settings.set("SCHEDULER", "of.the.user.Scheduler", priority=priority)
    Addon().update_settings(settings)
    assert settings["SCHEDULER"] == winner
