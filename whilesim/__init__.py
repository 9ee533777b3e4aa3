"""whilesim: training conversations for support agents, and a true word on what they are worth.

The package is a street. Data pass the houses in this order, and a module imports only what
stands above it.

    core           errors, seeds, text, templates
    chat           messages, models, endpoints
    situations     policy and tools -> the situations worth writing
    world          a back-end that remembers what was done to it
    cards          what each customer knows and wants; the plan
    conversations  cards played out
    grading        checks, judge, verdicts
    keeping        rows, ledger, datasets, report
    playing        a plan played, checked and written as rows
    refilling      more conversations for what the kept rows lack
    street         simulate(): the whole job in one call
    shell          how commands speak: tables, JSON, exit codes
    scale          one run on many machines
    evals          golden tickets, floors, gates: whether the agent you ship is right
    training       kept rows as a LoRA adapter
    showcase       the bundled example, said stage by stage
    doctor         what is here: versions, keys, endpoints, prices
    cli            the same from a shell
    __main__       the same as ``python -m whilesim``

Names are loaded when they are first used: ``import whilesim`` loads no model client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whilesim.cards.plan import Plan
    from whilesim.cards.planning import load_plan, plan
    from whilesim.chat.models import Model
    from whilesim.chat.throttle import Budget
    from whilesim.core.errors import (
        GateFailed,
        InputError,
        JudgeError,
        MissingExtra,
        ModelError,
        RunError,
        WhilesimError,
    )
    from whilesim.evals.compare import compare
    from whilesim.evals.gate import gate
    from whilesim.evals.runner import aevaluate, evaluate
    from whilesim.evals.setup import EvalOptions
    from whilesim.evals.tickets import load_tickets
    from whilesim.keeping.loading import concat, load
    from whilesim.keeping.rows import Row
    from whilesim.keeping.simulation import Simulation
    from whilesim.situations.axes import forbid
    from whilesim.street import asimulate, simulate
    from whilesim.world.live import live
    from whilesim.world.spec import WorldSpec

__version__ = "0.1.0"

_ROOMS = {
    "core.errors": ["GateFailed", "InputError", "JudgeError", "MissingExtra", "ModelError", "RunError", "WhilesimError"],
    "chat.models": ["Model"],
    "chat.throttle": ["Budget"],
    "situations.axes": ["forbid"],
    "world.live": ["live"],
    "world.spec": ["WorldSpec"],
    "cards.plan": ["Plan"],
    "cards.planning": ["load_plan", "plan"],
    "keeping.rows": ["Row"],
    "keeping.simulation": ["Simulation"],
    "keeping.loading": ["concat", "load"],
    "street": ["asimulate", "simulate"],
    "evals.tickets": ["load_tickets"],
    "evals.setup": ["EvalOptions"],
    "evals.runner": ["aevaluate", "evaluate"],
    "evals.gate": ["gate"],
    "evals.compare": ["compare"],
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Budget", "EvalOptions", "GateFailed", "InputError", "JudgeError", "MissingExtra", "Model", "ModelError", "Plan",
    "Row", "RunError", "Simulation", "WhilesimError", "WorldSpec", "aevaluate", "asimulate", "compare", "concat",
    "evaluate", "forbid", "gate", "live", "load", "load_plan", "load_tickets", "plan", "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'whilesim' has no attribute {name!r}")
    return getattr(import_module(f"whilesim.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
