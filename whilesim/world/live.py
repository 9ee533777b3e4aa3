"""Live: a world that executes Python functions, on purpose only.

Functions given as tools are never executed elsewhere: this is the one place, and it runs
what it is given with all its effects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, parse_object
from whilesim.world.mock import WorldCall


class LiveWorld:
    """Answers calls by executing functions; keeps no records of its own."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions
        self.log: list[WorldCall] = []

    @property
    def state(self) -> Mapping[str, Any]:
        """Nothing: what the functions changed, only they know."""
        return {}

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Execute one function and return its result as text; what it raises is the reply."""
        given = parse_object(arguments) if isinstance(arguments, str) else dict(arguments)
        failed = True
        if name not in self._functions:
            reply = f"Error: no tool named {name!r}"
        elif given is None:
            reply = "Error: the arguments are not a JSON object"
        else:
            try:
                result = self._functions[name](**given)
                reply, failed = result if isinstance(result, str) else dumps(result), False
            except Exception as error:  # a function of the user's may raise anything; its failure is a reply
                reply = f"Error: {type(error).__name__}: {error}"
        text = arguments if isinstance(arguments, str) else dumps(arguments)
        self.log.append(WorldCall(name=name, arguments=text, reply=reply, failed=failed))
        return reply


def live(functions: Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]) -> Callable[[Any, int], LiveWorld]:
    """Return a factory of worlds that execute the functions: pass it as ``world=``.

    The functions run with all their effects, once for each call of the agent's.

    Raises:
        InputError: Something given cannot be called by name, or is a coroutine function.
    """
    named = dict(functions) if isinstance(functions, Mapping) else {getattr(f, "__name__", ""): f for f in functions}
    for name, function in named.items():
        if not name or not callable(function) or inspect.iscoroutinefunction(function):
            msg = f"{name or function!r} is no plain function, so a call of it cannot be executed. Type: ws.live([get_order, cancel_order])"
            raise InputError(msg)
    return lambda _situation, _seed: LiveWorld(named)
