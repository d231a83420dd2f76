"""Takes accounts back when leases end, and applies what the try, or its loss, says about them."""

from __future__ import annotations

from shoal.core import exit_policy, identity_policy
from shoal.core.identities import LoginChange
from shoal.frontier.sqlite.exits import Exits
from shoal.frontier.values import Outcome


def return_account(exits: Exits, account_id: str, outcome: Outcome | None) -> None:
    """Free the account of a lease that has ended, with an outcome or without one."""
    if outcome is None:
        lose_account(exits, account_id)
        return
    if (exit_ := exits.exit(account_id)) is None:
        return
    state, report = exits.accounts.state(account_id), outcome.identity
    exits.give_back(exit_, None, exits.now)
    identity_policy.unlend(state, exit_)
    if outcome.sent:
        exit_.requests += 1
        exit_.wire_bytes += outcome.wire_bytes
        rules, spent = exits.rules[exit_.pool], exits.spent[exit_.pool]
        exit_policy.spend(spent, rules, outcome.wire_bytes, exits.now)
    if report is not None:
        identity_policy.after_report(state, exit_, report, exits.now)
    exits.accounts.put(account_id, report.jar if report is not None else None)


def lose_account(exits: Exits, account_id: str) -> None:
    """Free an account whose worker is gone, or need not end its lease any more."""
    if (exit_ := exits.exit(account_id)) is None:
        return
    state = exits.accounts.state(account_id)
    exits.give_back(exit_, None, exits.now)
    identity_policy.unlend(state, exit_)
    identity_policy.after_loss(exit_, exits.now)
    exits.accounts.put(account_id)


def has_met_an_end(outcome: Outcome | None) -> bool:
    """Whether a try found that its session had ended."""
    report = outcome.identity if outcome is not None else None
    return report is not None and report.change is LoginChange.OUT
