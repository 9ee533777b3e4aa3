"""Rules: what an agent must not do, as data, or as a function of the user's.

A rule is broken by calls. ``{"when_tool": "issue_refund", "unless_state": {"verified": true}}``
is broken by a refund while the state does not say that the customer is verified;
``{"when_tool": "cancel_order", "before": "lookup_order"}`` by a cancellation that no successful
look-up came before; ``{"never": "delete_*"}`` by any such call. Names may hold ``*``.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pydantic import ConfigDict

from whilesim.cards.planning import near
from whilesim.core.errors import InputError
from whilesim.core.templates import load_words
from whilesim.grading.rubric import checked

Names = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must not be done."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str = ""
    when_tool: Names = ()
    unless_state: Mapping[str, Any] = field(default_factory=dict)
    before: Names = ()
    never: Names = ()

    @property
    def tools(self) -> list[str]:
        """The tools that it names in full, not by a pattern."""
        named = (*_tuple(self.when_tool), *_tuple(self.before), *_tuple(self.never))
        return [name for name in named if not set("*?[") & set(name)]

    def broken(self, calls: Sequence[Mapping[str, Any]], missing: Callable[[str, Any], str]) -> str:
        """Say how the calls break the rule; empty where they do not. ``missing`` says why the state is not what is wanted."""
        earlier: list[str] = []
        for call in calls:
            if _named(name := str(call["name"]), self.never):
                return f"{name} was called, and never may be"
            if _named(name, self.when_tool):
                why = [told for key, wanted in self.unless_state.items() if (told := missing(key, wanted))]
                if self.before and not any(_named(done, self.before) for done in earlier):
                    why.append(f"no {' or '.join(_tuple(self.before))} came first")
                if why or not (self.unless_state or self.before):
                    return f"{name} was called" + (f", and {' and '.join(why)}" if why else "")
            if not call.get("failed"):
                earlier.append(name)
        return ""


RuleLike = Rule | Callable[..., Any]
Rules = Mapping[str, RuleLike]
"""Rules by name."""


def read_rules(source: Mapping[str, Any] | None = None) -> dict[str, RuleLike]:
    """Read rules by name, over the built-in ones: data, functions, or ``"module:function"``.

    A function gets the trace and the ticket, and returns True, or a sentence, where the rule
    was broken. What came first, a word or a call, stands in ``trace.trace.messages`` alone: no
    rule that is data can ask for a customer's yes.

    Raises:
        InputError: A rule has an unknown field, or says nothing.
    """
    return {name: _read_rule(name, rule) for name, rule in {**load_words("evals")["rules"], **(source or {})}.items()}


def choose_rules(wanted: Iterable[str | Mapping[str, Any]], known: Rules, where: str) -> Rules:
    """Return the rules of one ticket by name.

    Raises:
        InputError: A name is unknown: a rule that nobody wrote is never broken, and would pass.
    """
    chosen: dict[str, RuleLike] = {}
    for item in wanted:
        if isinstance(item, Mapping):
            name = str(item.get("name") or item.get("never") or item.get("when_tool") or "of must_not_do")
            rule = _read_rule(name, item, f"{where}: ")
        elif item in known:
            name, rule = item, known[item]
        else:
            told = f"{where}: must_not_do names the rule {item!r}, and nobody wrote it, so it would always pass. "
            typed = f'"rules": {{"{item}": {{"when_tool": "...", "unless_state": {{...}}}}}}. {near(item, known)}'
            told += "Name the rubric that holds it (--rubric eval/rubric.json), or write it there: "
            raise InputError(told + typed.strip())
        # two rules of one tool are two rules
        chosen[name if chosen.get(name, rule) == rule else f"{name} ({len(chosen) + 1})"] = rule
    return chosen


def load_named(spec: str, told: str, typed: str) -> Any:
    """Return what ``module:name`` or ``path.py:name`` names.

    Raises:
        InputError: It cannot be loaded; the message opens with ``told`` and ends with ``typed``.
    """
    module, _, name = spec.rpartition(":")
    script = module.endswith(".py")
    sys.path.insert(0, str(Path(module).resolve().parent if script else Path.cwd()))
    try:
        found = runpy.run_path(module).get(name) if script else getattr(import_module(module), name, None)
    except (Exception, SystemExit) as error:  # a file of the user's may raise anything while it is read
        raise InputError(f"{told}{type(error).__name__}: {error}. {typed}") from error
    if found is None:
        raise InputError(f"{told}{module} holds no {name!r}. {typed}")
    return found


def _read_rule(name: str, told: Any, where: str = "") -> RuleLike:
    if isinstance(told, str) and ":" in told:
        lost = f"the rule {name!r} names {told!r}, which cannot be imported: "
        told = load_named(told, lost, "Type module:function or eval/rules.py:function.")
    if callable(told):
        return cast(Callable[..., Any], told)
    typed = 'Type: {"when_tool": "issue_refund", "unless_state": {"verified": true}}'
    given = {"name": name, **told} if isinstance(told, Mapping) else told
    rule = checked(Rule, given, f"{where}the rule {name!r} cannot be read: ", typed)
    if not rule.when_tool and not rule.never:
        raise InputError(f"the rule {name!r} names no tool in when_tool or never, so nothing breaks it. {typed}")
    return rule


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _named(name: str, patterns: Names) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _tuple(patterns))
