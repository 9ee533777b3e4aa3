"""Dialects: where each way of writing tool schemas keeps name, description and arguments.

OpenAI (wrapped, bare, Responses), Anthropic, MCP, Gemini, Bedrock, Cohere, LangChain,
smolagents, BFCL, ToolBench: they differ in the name of a key and in the boxes around the list.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.jsontext import dumps, loads
from whilesim.core.text import shorten
from whilesim.situations.schemas import listed, mapping

_BOXES = (
    "result", "tools", "functions", "functionDeclarations", "function_declarations", "toolConfig", "tool_config",
    "toolSpec", "function", "api_list",
)  # fmt: skip
_NAMES = ("name", "api_name", "function_name", "tool_name", "title")
_DESCRIPTIONS = ("description", "api_description", "desc", "summary")
_ARGUMENTS = (
    "parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema", "args_schema",
    "parameter_definitions", "arguments", "inputs", "args", "schema",
)  # fmt: skip
_PARTS = (*_DESCRIPTIONS, *_ARGUMENTS)
_OUTSIDE = ("effect", "x-effect", "annotations", "required", "examples")  # beside OpenAI's "function"
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
    path: str = ""
    scopes: tuple[str, ...] = ()
    """OAuth scopes that a call needs."""
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
    alone = "name" not in source  # beside a name, only lists are boxes: 'result' may be a tool's reply
    kinds = {key: (list, tuple, Mapping) if alone or key == "function" else (list, tuple) for key in _BOXES}
    box = next((key for key, kind in kinds.items() if isinstance(source.get(key), kind)), None)
    inner = source[box] if box else None
    by_name = inner if isinstance(inner, Mapping) and not any(key in inner for key in _BOXES) else source
    if isinstance(inner, Mapping) and _name(inner):
        outside = {key: source[key] for key in _OUTSIDE if key in source}
        yield _draft({**outside, **inner}, source)
    elif box and by_name is not inner:
        yield inner
    elif not box and _name(source):
        yield _draft(source, source)
    elif by_name and all(isinstance(t, Mapping) and _first(t, _PARTS + _BOXES) is not None for t in by_name.values()):
        yield from ({"name": name, **tool} if _first(tool, _BOXES) is None else tool for name, tool in by_name.items())
    else:
        msg = (
            f"{where} is {shorten(repr(dict(source)), 120)}, which has no 'name'. "
            "Give each tool a name, as in {'name': 'find_order', 'description': ..., 'parameters': {...}}."
        )
        raise InputError(msg)


def _draft(source: Mapping[str, Any], original: Any) -> Draft:
    parameters = _first(source, _ARGUMENTS)
    if isinstance(parameters, Mapping) and isinstance(parameters.get("json"), Mapping):  # Bedrock
        parameters = parameters["json"]
    if "required_parameters" in source or "optional_parameters" in source:  # ToolBench
        kinds = ((True, source.get("required_parameters")), (False, source.get("optional_parameters")))
        parameters = [{"required": k, **mapping(item)} for k, items in kinds for item in listed(items)]
    if parameters is None and "properties" in source:  # a bare schema with a title
        parameters = {key: value for key, value in source.items() if key not in ("name", "title", "description")}
    elif isinstance(parameters, Mapping) and isinstance(source.get("required"), list):
        bare = "properties" not in parameters and all(isinstance(v, Mapping) for v in parameters.values())
        parameters = {"type": "object", "properties": parameters} if bare else parameters
        parameters = {"required": source["required"], **parameters}
    given = source.get("effect", source.get("x-effect"))
    return Draft(
        name=_name(source),
        description=str(_first(source, _DESCRIPTIONS) or ""),
        parameters=parameters,
        document=source,
        returns=_first(source, _RETURNS),
        examples=tuple(_examples(source.get("examples"))),
        effect=None if given is None else str(given),
        annotations=mapping(source.get("annotations")),
        method=str(source.get("method") or "").upper(),
        original=original,
    )


def _name(source: Mapping[str, Any]) -> str:
    name = _first(source, _NAMES)
    return str(name) if isinstance(name, (str, int)) else ""


def _examples(given: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Read ``examples`` of a tool: pairs, or mappings with arguments and a reply."""
    for item in listed(given):
        match item:
            case [Mapping() as arguments, reply]:
                yield arguments, reply
            case {"arguments": Mapping() as arguments, "reply": reply} | {
                "input": Mapping() as arguments,
                "output": reply,
            }:
                yield arguments, reply


def _first(source: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((source[key] for key in keys if source.get(key) is not None and source[key] != ""), None)


def read_text(text: str, *, where: str) -> Any:
    """Read tools written as JSON, JSON lines, a Python literal or YAML.

    Raises:
        InputError: The text is none of these.
    """
    import yaml

    for read in (loads, _read_lines, ast.literal_eval, _read_yaml):
        try:
            found = read(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, yaml.YAMLError):
            continue
        if isinstance(found, (Mapping, list, tuple)):
            return found
    msg = (
        f"{where}: {shorten(text, 60)!r} is neither JSON, JSON lines, YAML nor Python source. "
        "Give a list of tool schemas, for example [{'name': ..., 'parameters': {...}}]."
    )
    raise InputError(msg)


def _read_lines(text: str) -> list[Any]:
    return [loads(line) for line in text.splitlines() if line.strip()]


def _read_yaml(text: str) -> Any:
    import yaml

    # Through JSON and back: YAML has dates and keys that JSON does not know.
    return loads(dumps(json.loads(json.dumps(yaml.safe_load(text), default=str))))
