"""Preflight: whether each role's model can do what a run will ask, before anything is played.

One call for each role, with the agent's own system prompt and tools, finds out whether the
endpoint is there, takes the key, knows the model, has tools and has room for them. What is
known of an endpoint without asking (how many functions it takes, how much its model reads) is
looked at first: some endpoints cut what is too long without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whilesim.chat.bridge import find_window
from whilesim.chat.endpoint import PROBE, Endpoint, listed_as
from whilesim.chat.messages import Message, to_openai
from whilesim.chat.models import THROUGH_LITELLM, Chat, Model, Tools
from whilesim.core.errors import InputError, ModelError, RunError
from whilesim.core.jsontext import dumps
from whilesim.core.templates import load_words

_GREETING = Message(role="user", content="Say OK.")
_LEAST = 5  # bytes of English or JSON that are one token at least; other languages take more tokens


async def preflight(roles: Mapping[str, Chat], tools: Tools = (), system_prompt: str = "") -> None:
    """Ask each role's endpoint once, so that a run that cannot work fails before it begins.

    Args:
        roles: Role to chat.
        tools: The agent's.
        system_prompt: The agent's.

    Raises:
        InputError: The agent has more functions than its endpoint takes, or its system prompt
            and tools are longer than its model reads. Nothing has been sent.
        RunError: A role's endpoint does not answer; names the role and the cause.
    """
    told = [Message(role="system", content=system_prompt)] if system_prompt else []
    if isinstance(agent := roles.get("agent"), Endpoint):
        _check_functions(agent.model, tools)
        _check_window(agent.model, told, tools)
    for role, chat in roles.items():
        mine = (told, tools) if role == "agent" else ([], ())
        try:
            await chat.reply([*mine[0], _GREETING], mine[1], key=PROBE)
        except ModelError as error:
            what = "may not be asked" if error.reason == "budget" else "does not answer"
            raise RunError(f"the {role}'s model {what}, so nothing was played ({error.reason}). {error}") from error


def _check_functions(model: Model, tools: Tools) -> None:
    provider = model.name.partition("/")[0] if model.provider in THROUGH_LITELLM else ""
    host = model.host.partition(":")[0]
    limits = load_words("endpoints")["functions"].items()
    most = next((n for name, n in limits if name == provider or host.endswith(name)), None)
    if most is not None and len(tools) > most and model.tool_mode != "json":
        msg = f"there are {len(tools)} tools, and {model.host} takes {most} functions in a request. Give fewer tools, "
        raise InputError(msg + 'or type ws.Model(..., tool_mode="json"): tools are then asked for as JSON.')


def _check_window(model: Model, told: Sequence[Message], tools: Tools) -> None:
    window = model.window or find_window(*listed_as(model))
    least = len(dumps([to_openai(told), list(tools)]).encode("utf-8", "replace")) // _LEAST
    if window is not None and least > window:
        needed = f"the system prompt and {len(tools)} tools take {least:,} tokens or more, and {model.name!r} reads {window:,}."
        typed = "or type ws.Model(..., window=...) if the model reads more than is known here."
        raise InputError(f"{needed} Choose a model that reads more, give fewer tools or a shorter policy, {typed}")
