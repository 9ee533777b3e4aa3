"""Plugin: one pytest test per ticket.

    pytest --whilesim-suite eval/golden_tickets.jsonl --whilesim-agent eval/agent.py:agent

The whole suite is played once, at the first test; each ticket then passes or fails by the
gate. A test that is tried again until it passes hides an agent that is wrong now and then, so
retries are refused unless they are asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whilesim.core.errors import WhilesimError

_OPTIONS: dict[str, dict[str, Any]] = {
    "suite": {"help": "tickets: a file, or a dataset on the Hub"},
    "agent": {"help": "module:function, path.py:function or provider:model", "default": "scripted"},
    "rubric": {"help": "rubric.json: weights, hard fail, rules"},
    "tools": {"help": "the agent's tools; may be given again", "action": "append"},
    "policy": {"help": "text file with the agent's policy"},
    "judge": {"help": "a model for what no rule can score"},
    "trials": {"help": "how often each ticket is played", "type": int, "default": 1},
    "resolution": {"help": "resolution that each ticket must reach, 0 to 1", "type": float},
    "passed": {"help": "each ticket must be passed, every expected call made", "action": "store_true"},
    "allow-retries": {"help": "let other plugins try a failed ticket again", "action": "store_true"},
}
_REASONS = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    for name, how in _OPTIONS.items():
        parser.getgroup("whilesim", "golden tickets").addoption(f"--whilesim-{name}", **how)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse retries."""
    config.addinivalue_line("markers", "whilesim: a golden ticket, played by the agent under test")
    for name in ("reruns", "retries", "force_flaky") if config.option.whilesim_suite else ():
        if config.getoption(name, None) and not config.option.whilesim_allow_retries:
            msg = f"--{name.replace('_', '-')} tries failed tickets again, which hides an agent that is wrong now and then."
            raise pytest.UsageError(f"{msg} Leave it out, or type --whilesim-allow-retries.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add one test per ticket, before -k and -m choose among them."""
    if not config.option.whilesim_suite:
        return
    from whilesim.evals.tickets import load_tickets

    try:
        tickets = load_tickets(config.option.whilesim_suite)
    except WhilesimError as error:
        raise pytest.UsageError(str(error)) from error
    for ticket in tickets:
        place = f"{config.option.whilesim_suite}::{ticket.ticket_id}"
        item = _TicketTest.from_parent(session, name=ticket.ticket_id, nodeid=place)
        item.add_marker("whilesim")
        items.append(item)


class _TicketTest(pytest.Item):
    def runtest(self) -> None:
        """Fail where the gate names the ticket."""
        if _REASONS not in self.config.stash:
            try:
                self.config.stash[_REASONS] = _play(self.config.option)
            except WhilesimError as error:  # it is of all tickets, and not to be paid for with each
                self.config.stash[_REASONS] = {item.name: str(error) for item in self.session.items}
        if why := self.config.stash[_REASONS].get(self.name):
            pytest.fail(why, pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Say which ticket it is."""
        return self.path, None, f"ticket {self.name}"


def _play(given: Any) -> dict[str, str]:
    """Play all tickets, and return why those that fail do."""
    from whilesim.evals.agents import load_agent
    from whilesim.evals.gate import hold, is_below
    from whilesim.evals.runner import evaluate
    from whilesim.evals.setup import read_options

    how = {name: getattr(given, f"whilesim_{name}") for name in ("policy", "tools", "rubric", "judge", "trials")}
    options = read_options({**how, "no_floors": True, "progress": False})
    result = evaluate(load_agent(given.whilesim_agent), given.whilesim_suite, **options)
    least, asked = given.whilesim_resolution, 1.0 if given.whilesim_passed else None
    reasons = dict(hold(result, passed=asked).reasons)
    for trace in result.traces if least is not None else ():
        if is_below(trace, "resolution", least):
            reasons.setdefault(trace.case_id, trace.say_why("resolution"))
    return reasons
