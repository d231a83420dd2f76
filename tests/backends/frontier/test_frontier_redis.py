"""The Redis frontier on a real server: the contract."""

from __future__ import annotations

import pytest

from contract.frontier_suite import *  # noqa: F403
from support.frontiers import Backend


@pytest.fixture
def backend(on_redis: Backend) -> Backend:
    return on_redis
