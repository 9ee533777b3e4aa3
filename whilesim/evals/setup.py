"""Setup: all that is settled before a ticket is played, and the protocol that freezes it.

Bad input is found here, before the first call is paid.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from whilesim.cards.planning import is_share, whole_number
from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object, write_whole
from whilesim.core.templates import load_words
from whilesim.core.text import digest
from whilesim.evals.rules import Rule, Rules, choose_rules, read_rules
from whilesim.evals.sandbox import Sandbox, open_sandbox, refuse_stranger
from whilesim.evals.scorers import SCORERS
from whilesim.evals.tickets import Tickets, load_tickets, read_json
from whilesim.grading.rubric import Rubric, read_rubric, read_rubric_file
from whilesim.keeping.judging import name_model
from whilesim.shell import read_policy
from whilesim.situations.policy import Policy, parse_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """How tickets are played; the defaults do for most."""

    system_prompt: str | None = None
    """The policy, as the agent is told it; the judge reads it too."""
    world: Any = None
    """A ``WorldSpec``, or a factory ``(initial_state, seed) -> world``; ``ws.live(...)`` is one."""
    customer: Any = None
    """Who speaks for tickets with a persona; by default the agent's model, else a script."""
    turns: int = 6
    concurrency: int = 64
    run_dir: str | os.PathLike[str] | None = None
    """Folder for ``traces.jsonl`` and ``scores.json``."""
    floors: bool = True
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Rules by name, data or functions, over those of the rubric."""
    fraction: float = 1.0
    """Share of what passed that the judge reads."""
    seed: int = 0
    protocol: str | os.PathLike[str] | None = None
    """A protocol that was frozen before; the run must be what it says."""
    progress: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All that is settled before anything is played."""

    tickets: Tickets
    box: Sandbox
    rubric: Rubric
    rules: Mapping[str, Rules]
    trials: int
    options: EvalOptions

    @property
    def judged(self) -> Rubric:
        """The part of the rubric that a judge is asked about."""
        return replace(self.rubric, criteria=tuple(c for c in self.rubric.criteria if c.name not in SCORERS))


def read_options(how: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``evaluate`` takes beside agent and tickets, from the options of a command."""
    named = {name: how[name] for name in ("customer", "turns", "run_dir", "protocol", "progress") if name in how}
    prompt = read_policy(how["policy"]) if how["policy"] else None
    options = EvalOptions(system_prompt=prompt, floors=not how.get("no_floors"), **named)
    given = {name: how[name] for name in ("rubric", "judge", "trials") if name in how}
    return {**given, "tools": [Path(file) for file in how["tools"] or ()], "options": options}


def freeze_protocol(path: str | os.PathLike[str], tickets: Any, **how: Any) -> dict[str, Any]:
    """Write down what an evaluation will be made of, before it is run; arguments as for ``evaluate``."""
    options = how.get("options", EvalOptions())
    setup = set_up(tickets, how.get("rubric"), how.get("trials", 1), how.get("tools", ()), options)
    told = describe(setup, how.get("judge"))
    write_whole(path, [dumps({**told, "digest": digest(dumps(told))}, indent=1).encode()])
    return told


def check_protocol(path: str | os.PathLike[str], told: Mapping[str, Any]) -> None:
    """Hold a run against a frozen protocol.

    Raises:
        InputError: The file was changed since, or the run is another one; names what differs.
    """
    where = f"the protocol {os.fspath(path)!r}"
    typed = "Type: whilesim eval TICKETS --freeze protocol.json"
    frozen = read_json(path, where, typed)
    if not isinstance(frozen, dict) or "digest" not in frozen:
        raise InputError(f"{where} is none: it holds no digest. {typed}")
    if frozen.pop("digest") != digest(dumps(frozen)):
        raise InputError(f"{where} was changed after it was frozen: its digest is not that of its text.")
    if differ := [name for name in told if told[name] != frozen.get(name)]:
        told_of = "; ".join(f"{n} is {told[n]!r:.60} and was frozen as {frozen.get(n)!r:.60}" for n in differ)
        raise InputError(f"this run is not the one of {where}: {told_of}. Freeze a new one, or run that.")


def describe(setup: Setup, judge_model: Any) -> dict[str, Any]:
    """Say what decides the scores of a run, the agent left out."""
    options = setup.options
    # a function is known by its name: what it does may have changed
    rules = [(i, n, getattr(r, "__name__", r)) for i, found in setup.rules.items() for n, r in found.items()]
    return {
        "tickets": setup.tickets.digest,
        "count": len(setup.tickets),
        "trials": setup.trials,
        **{name: getattr(options, name) for name in ("turns", "seed", "fraction")},
        "judge": None if judge_model is None else name_model(judge_model),
        "rubric": digest(repr(setup.rubric)),
        "rules": digest(repr(rules)),
        "tools": digest(dumps([t.to_openai() for t in setup.box.tools])),
        "system_prompt": digest(options.system_prompt or ""),
    }


def set_up(tickets: Any, rubric: Any, trials: int, tools: Any, options: EvalOptions) -> Setup:
    """Read and check everything; arguments as for ``evaluate``."""
    trials = whole_number("trials", trials)
    turns, slots = whole_number("turns", options.turns), whole_number("concurrency", options.concurrency)
    options = replace(options, turns=turns, concurrency=slots)
    if not is_share(options.fraction):
        raise InputError(f"fraction={options.fraction!r} is no share. Type a number from 0 to 1.")
    suite = load_tickets(tickets)
    read = read_rubric(rubric if rubric is not None else load_words("evals")["rubric"])
    known = read_rules({**_rules_of(rubric), **options.rules})
    rules = {t.ticket_id: choose_rules(t.must_not_do, known, t.name) for t in suite}
    text = options.system_prompt or ""
    policy = parse_policy(text) if text.strip() else Policy(text="", clauses=())
    box = open_sandbox(suite, tools, policy, options.world, seed=options.seed)
    for ticket in suite if tools else ():
        for name, tool in ((n, t) for n, r in rules[ticket.ticket_id].items() if isinstance(r, Rule) for t in r.tools):
            where = f"{ticket.name}: the rule {name!r} names the tool {tool!r}, and there is no such tool"
            refuse_stranger(where, tool, {t.name for t in box.tools})
    return Setup(tickets=suite, box=box, rubric=read, rules=rules, trials=trials, options=options)


def _rules_of(rubric: Any) -> Mapping[str, Any]:
    if isinstance(rubric, (str, os.PathLike)):  # a path, or the text itself
        rubric = parse_object(read_rubric_file(Path(rubric)) if os.path.isfile(rubric) else str(rubric))
    return rubric.get("rules", {}) if isinstance(rubric, Mapping) else {}


def name_agent(agent: Any) -> str:
    """Return what results call an agent; never a key."""
    if isinstance(agent, str):
        place = urlsplit(agent)
        return f"{place.scheme}://{place.hostname}{place.path}" if place.hostname else agent
    found = getattr(agent, "name", None) or getattr(agent, "__name__", None)
    return found if isinstance(found, str) else type(agent).__name__


def find_commit() -> str:
    """Return the commit that is checked out, as CI or git says; empty where neither does."""
    found = os.environ.get("GITHUB_SHA", "")
    with suppress(OSError):
        asked = ["git", "rev-parse", "HEAD"]
        found = found or subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603  a fixed command
    return found
