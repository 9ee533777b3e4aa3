"""Dialects: where each way of writing tool schemas keeps name, description and arguments.

OpenAI (wrapped, bare, Responses), Anthropic, MCP, Gemini, LangChain, BFCL, Cohere, ToolBench: they
differ in the name of a key and in the boxes around the list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import loads, read_yaml
from whilesim.core.text import shorten
from whilesim.situations.schemas import listed, mapping

_BOXES = (
    "result", "tools", "functions", "functionDeclarations", "function_declarations", "toolSpec", "function", "api_list", "endpoints",
)  # fmt: skip
_NAMES = ("name", "api_name", "function_name", "tool_name", "title")
_DESCRIPTIONS = ("description", "api_description", "desc", "summary")
_ARGUMENTS = (
    "parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema", "args_schema",
    "parameter_definitions", "parameterDefinitions", "input_parameters", "inputParameters", "params", "arguments", "inputs",
    "args", "schema",
)  # fmt: skip
_PARTS = (*_DESCRIPTIONS, *_ARGUMENTS)
_OUTSIDE = ("effect", "x-effect", "annotations")  # beside OpenAI's "function"
_RETURNS = ("returns", "response", "outputSchema", "output_schema", "responseJsonSchema", "return_schema", "result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a source says of one tool, before anything is normalised or inferred."""

    name: str
    description: str = ""
    parameters: Any = None
    document: Any = None
    """What references in ``parameters`` and ``returns`` point into, where it is not themselves."""
    returns: Any = None
    examples: tuple[tuple[Mapping[str, Any], Any], ...] = ()
    effect: str | None = None
    """The effect, where the source states it."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """MCP's hints: ``readOnlyHint``, ``destructiveHint``."""
    method: str = ""
    """The HTTP method in capitals, where the tool is an HTTP operation."""
    original: Any = None
    notes: tuple[str, ...] = ()


def draft_mappings(source: Mapping[str, Any], where: str) -> Iterator[Any]:
    """Yield a ``Draft`` for a tool's mapping, or what stands in a box of tools, to be read in turn.

    Args:
        source: One tool in any dialect, or a mapping with tools inside.
        where: Names the place in an error: ``tools[3]``.

    Raises:
        InputError: The mapping is no tool and holds none.
    """
    kinds = (list, tuple) if "name" in source else (list, tuple, Mapping)  # 'result' may be a named tool's reply
    inner = next((source[key] for key in _BOXES if isinstance(source.get(key), kinds)), None)
    if isinstance(inner, Mapping) and _name(inner):
        yield _draft({**{key: source[key] for key in _OUTSIDE if key in source}, **inner}, source)
    elif inner is not None:
        yield inner
    elif _name(source):
        yield _draft(source, source)
    elif source and all(isinstance(t, Mapping) and _first(t, _PARTS + _BOXES) is not None for t in source.values()):
        yield from ({"name": name, **tool} if _first(tool, _BOXES) is None else tool for name, tool in source.items())
    else:
        raise InputError(
            f"{where} is {shorten(repr(dict(source)), 120)}, which has no 'name'. "
            "Give each tool a name, as in {'name': 'find_order', 'description': ..., 'parameters': {...}}."
        )


def _draft(source: Mapping[str, Any], original: Any) -> Draft:
    parameters = _first(source, _ARGUMENTS)
    if "required_parameters" in source or "optional_parameters" in source:  # ToolBench
        kinds = ((True, source.get("required_parameters")), (False, source.get("optional_parameters")))
        parameters = [{"required": k, **mapping(item)} for k, items in kinds for item in listed(items)]
    if parameters is None and "properties" in source:  # a bare schema with a title
        parameters = {key: value for key, value in source.items() if key not in ("name", "title", "description")}
    elif parameters is None:
        _refuse_misspelt(source)
    elif isinstance(parameters, Mapping) and isinstance(source.get("required"), list):
        bare = "properties" not in parameters and all(isinstance(v, Mapping) for v in parameters.values())
        parameters = {"type": "object", "properties": parameters} if bare else parameters
        parameters = {"required": source["required"], **parameters}
    if isinstance(parameters, Mapping) and parameters.keys() == {"json"} and isinstance(parameters["json"], Mapping):
        parameters = parameters["json"]  # Bedrock
    called = re.sub(r"^([A-Z]+) /.*|.+", r"\1", _name(source))  # 'GET /orders/{id}'
    given = source.get("effect", source.get("x-effect"))
    return Draft(
        name=_name(source), description=str(_first(source, _DESCRIPTIONS) or ""), parameters=parameters, document=source,
        returns=_first(source, _RETURNS), effect=None if given is None else str(given), original=original,
        annotations=mapping(source.get("annotations")), method=str(source.get("method") or called).upper(),
    )  # fmt: skip


def _refuse_misspelt(source: Mapping[str, Any]) -> None:
    """Raise InputError where a tool without arguments has them under a key that is a slip of the right one."""
    for key in (k for k, v in source.items() if isinstance(k, str) and v and isinstance(v, (Mapping, list))):
        for near in get_close_matches(key, _ARGUMENTS, n=1, cutoff=0.85):
            raise InputError(f"tool {_name(source)!r} has {key!r}, which is no key of a tool. Did you mean {near!r}?")


def _name(source: Mapping[str, Any]) -> str:
    name = _first(source, _NAMES)
    return str(name) if isinstance(name, (str, int)) else ""


def _first(source: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((source[key] for key in keys if source.get(key) is not None and source[key] != ""), None)


def read_text(text: str, *, where: str) -> Any:
    """Read tools written as JSON, JSON lines or YAML.

    Raises:
        InputError: The text is none of these.
    """
    # YAML through JSON and back: it has dates and keys that JSON does not know.
    yaml, lines = lambda: loads(json.dumps(read_yaml(text), default=str)), filter(str.strip, text.splitlines())
    for read in (lambda: loads(text), lambda: [loads(line) for line in lines], yaml):
        with suppress(ValueError, TypeError):
            found = read()
            if isinstance(found, (Mapping, list)):
                return found
    raise InputError(
        f"{where}: {shorten(text, 60)!r} is neither JSON, JSON lines, YAML nor Python source. "
        "Give a list of tool schemas, for example [{'name': ..., 'parameters': {...}}]."
    )
