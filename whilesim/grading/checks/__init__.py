"""Checks: findings by rule, from messages, tools and failed calls alone.

    findings       what a check found
    language       the words of each language, a text as tagged sentences
    calls          calls with their replies, and which failed
    deeds          what each tool does, as senses
    identifiers    where the ids in calls come from
    claims         what the agent says to be done
    support        whether a claim is true of the calls before it
    conduct        form: arguments, answers, roles, cuts, leaks; whether the customer agreed first
    run            all of them over one conversation
    customer       what is wrong with the customer's side
"""

from typing import Any

_HOMES = {"run_checks": "run", "SEVERITY": "run", "Finding": "findings", "check_customer": "customer"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
