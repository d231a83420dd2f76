"""What lua/identity_policy.lua decides is what core/identity_policy.py decides, step by step."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.core import identity_policy as policy
from shoal.core.exits import Exit, Pair, PoolRules
from shoal.core.identities import AccountState, IdentityReport, LoginChange
from shoal.frontier.redis.exit_forms import RECORDS, account_of, values_of
from shoal.frontier.redis.forms import pack_values, report_of
from shoal.frontier.redis.prelude import prelude
from support.redis_servers import RedisServer

WORKERS = ("one", "two")
RULES = PoolRules(name="@shop", concurrency=2)

MAIN = """
local account, exit = account_of(NEW_ACCOUNT), exit_of(NEW_EXIT)
local through, pair, seen = exit_of(NEW_EXIT), pair_of(NEW_PAIR), {}
local does = {}
function does.lend(step)
  exit.leased, exit.used_at = exit.leased + 1, step.at
  identity_policy.lend(account, step.worker)
end
function does.unlend()
  exit.leased = math.max(exit.leased - 1, 0)
  identity_policy.unlend(account, exit)
end
function does.lose(step) identity_policy.after_loss(exit, step.at) end
function does.report(step) identity_policy.after_report(account, exit, step.report, step.at) end
function does.forget() identity_policy.forget_login(account, exit) end
function does.hold(step) identity_policy.hold(exit, step.at + step.span) end
function does.let_go(step) identity_policy.let_go(account, exit, step.report, step.at) end
function does.bind(step)
  through.id, through.session = step.through, step.session
  identity_policy.bind(account, through)
end
function does.change(step)
  through.session, through.is_listed = step.session, step.is_listed
  through.out_until, pair.cool_until = step.at + step.out, step.at + step.cool
end
for i, step in ipairs(cmsgpack.unpack(ARGV[1])) do
  does[step.does](step)
  seen[i] = {
    cmsgpack.pack(account_values(account)),
    cmsgpack.pack(exit_values(exit)),
    string.format('%.0f', identity_policy.rank_at(account, exit)),
    identity_policy.may_use(account, exit, step.worker) and 1 or 0,
    identity_policy.ready_at(account, exit, {concurrency = 2}) <= step.at and 1 or 0,
    identity_policy.is_held(exit, step.at) and 1 or 0,
    identity_policy.is_bound(account, through, pair, step.at) and 1 or 0,
  }
end
return seen
"""


class Lived:
    """The same in Python."""

    def __init__(self) -> None:
        self.account = AccountState()
        self.exit = Exit(id="@shop#alice", pool="")
        self.through, self.pair = Exit(id="", pool=""), Pair()

    def lend(self, step: dict[str, Any]) -> None:
        self.exit.leased, self.exit.used_at = self.exit.leased + 1, step["at"] / 1e6
        policy.lend(self.account, step["worker"])

    def unlend(self, step: dict[str, Any]) -> None:
        self.exit.leased = max(self.exit.leased - 1, 0)
        policy.unlend(self.account, self.exit)

    def lose(self, step: dict[str, Any]) -> None:
        policy.after_loss(self.exit, step["at"] / 1e6)

    def report(self, step: dict[str, Any]) -> None:
        policy.after_report(self.account, self.exit, step["report"], step["at"] / 1e6)

    def forget(self, step: dict[str, Any]) -> None:
        policy.forget_login(self.account, self.exit)

    def hold(self, step: dict[str, Any]) -> None:
        policy.hold(self.exit, (step["at"] + step["span"]) / 1e6)

    def let_go(self, step: dict[str, Any]) -> None:
        policy.let_go(self.account, self.exit, step["report"], step["at"] / 1e6)

    def bind(self, step: dict[str, Any]) -> None:
        self.through.id, self.through.session = step["through"], step["session"]
        policy.bind(self.account, self.through)

    def change(self, step: dict[str, Any]) -> None:
        self.through.session, self.through.is_listed = step["session"], step["is_listed"]
        self.through.out_until = (step["at"] + step["out"]) / 1e6
        self.pair.cool_until = (step["at"] + step["cool"]) / 1e6

    def seen(self, step: dict[str, Any]) -> list[Any]:
        now = step["at"] / 1e6
        return [
            msgspec.structs.asdict(self.account),
            {name: getattr(self.exit, name) for name in RECORDS["exit"]},
            round(policy.rank_at(self.account, self.exit) * 1e6),
            policy.may_use(self.account, self.exit, step["worker"]),
            policy.ready_at(self.account, self.exit, RULES) <= now,
            policy.is_held(self.exit, now),
            policy.is_bound(self.account, self.through, self.pair, now),
        ]


SECOND = 1_000_000
STEPS = [
    *("lend", "unlend", "lose", "forget", "hold", "let_go", "bind", "change"),
    *["report"] * 6,  # It takes several in a row until an account is banned.
]
some_report = st.builds(
    IdentityReport,
    change=st.sampled_from([*LoginChange, *[LoginChange.FAILED] * 6]),
    reason=st.sampled_from(["", "the password is wrong"]),
    user_agent=st.sampled_from(["", "Mozilla"]),
    login_url=st.sampled_from(["", "http://a.example/login"]),
)
some_step = st.fixed_dictionaries(
    {
        "does": st.sampled_from(STEPS),
        "worker": st.sampled_from(WORKERS),
        "report": some_report,
        "after": st.integers(0, 400).map(lambda seconds: seconds * SECOND),
        "span": st.sampled_from([SECOND, 900 * SECOND]),
        "through": st.sampled_from(["res-1", "res-2"]),
        "session": st.integers(0, 1),
        "is_listed": st.booleans(),
        "out": st.sampled_from([-1_700_000_000 * SECOND, 0, 50 * SECOND]),
        "cool": st.sampled_from([-1_700_000_000 * SECOND, 0, 50 * SECOND]),
    }
)


@pytest.fixture(scope="module")
def run(shared_redis: RedisServer) -> Callable[[bytes], list[list[Any]]]:
    folder = files("shoal.frontier.redis").joinpath("lua")
    libraries = ("exit_policy.lua", "identity_policy.lua")
    body = "\n".join([*(folder.joinpath(name).read_text("utf-8") for name in libraries), MAIN])
    text = f"{prelude(body)}\n{body}"
    client = shared_redis.client()
    return lambda steps: client.eval(text, 0, steps)


def decoded(seen: list[Any]) -> list[Any]:
    account, exit_, rank, *flags = seen
    state = msgspec.structs.asdict(account_of(account))
    return [state, values_of("exit", exit_), int(rank), *map(bool, flags)]


@given(steps=st.lists(some_step, min_size=1, max_size=25))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_all_that_it_decides(
    run: Callable[[bytes], list[list[Any]]], steps: list[dict[str, Any]]
) -> None:
    at = 1_700_000_000 * SECOND
    for step in steps:
        at += step["after"]
        step["at"] = at
    packed = pack_values([{**step, "report": report_of(step["report"])} for step in steps])
    lived = Lived()
    for step, seen in zip(steps, run(packed), strict=True):
        getattr(lived, step["does"])(step)
        assert decoded(seen) == lived.seen(step), step["does"]
