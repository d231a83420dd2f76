"""What errors of the Redis library say when they are ours."""

from __future__ import annotations

import pytest
from redis import exceptions

from shoal.drivers.redis.failures import translated
from shoal.errors import StorageBusy


@pytest.mark.parametrize("error", [TimeoutError(), exceptions.TimeoutError()])
def test_a_server_that_does_not_answer_is_said_not_to(error: Exception) -> None:
    with (
        pytest.raises(StorageBusy, match=r"^redis://queue: no answer$"),
        translated("redis://queue"),
    ):
        raise error
