"""Callables: Python functions, tool objects and Python source as tools, never executed.

A live function gives its signature, type hints and docstring; source gives the same from its
syntax tree. Arguments that a framework fills in (``self``, a context, injected state) are left
out; required is what has no default.
"""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.text import shorten
from whilesim.situations.annotations import Classes, annotation_schema, constants, last_name, type_schema
from whilesim.situations.dialects import Draft
from whilesim.situations.docstrings import Docstring, read_docstring
from whilesim.situations.schemas import Schema

_BOUND = frozenset({"self", "cls"})
_CONTEXTS = frozenset({"ctx", "context", "tool_context", "run_context", "callback_context", "run_manager"})
_INJECTED_TYPE = re.compile(
    r"(Context|ContextWrapper|RunnableConfig|InjectedState|InjectedToolCallId|InjectedToolArg|Depends)\b"
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARTS = frozenset({"parameters", "input_schema", "inputSchema"})
_BOXES = frozenset({"function", "tools", "functions", "functionDeclarations", "toolSpec"})
_MARKS = re.compile(r"tool|function|action|is_|mcp|command", re.IGNORECASE)
_PYTHON = re.compile(r"^(?:async def |def |class |@|import |from |\w+\s*(?::[^=\n]*)?=\s*[\[{])", re.MULTILINE)


def is_python(text: str) -> bool:
    """Say whether a text is Python source with definitions in it."""
    if not _PYTHON.search(text):
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def draft_object(value: Any, where: str) -> Iterator[Any]:
    """Yield what a Python value says of a tool: a function, a class with a schema, a tool object.

    Raises:
        InputError: The value is none of these.
    """
    schema = next(
        (s for n in ("args_schema", "params_json_schema", "parameters") if (s := getattr(value, n, None))), None
    )
    if isinstance(getattr(value, "openai_schema", None), Mapping):
        yield value.openai_schema
    elif isinstance(value, type) and (getattr(value, "__annotations__", None) or hasattr(value, "model_fields")):
        doc = read_docstring(value.__doc__)
        yield Draft(name=value.__name__, description=doc.description, parameters=_hinted(value), original=value)
    elif isinstance(getattr(value, "name", None), str) and isinstance(schema, (Mapping, type)):
        parameters = _hinted(schema) if isinstance(schema, type) else schema
        description = str(getattr(value, "description", "") or "")
        yield Draft(name=value.name, description=description, parameters=parameters, original=value)
    elif hasattr(value, "model_dump"):  # MCP's and Gemini's own objects
        yield value.model_dump(by_alias=True, exclude_none=True)
    elif callable(value):
        yield _draft_function(value)
    else:
        msg = f"{where} is {shorten(repr(value), 80)}. Give a tool schema or a Python function."
        raise InputError(msg)


def _draft_function(function: Any) -> Draft:
    inner = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(inner) and not isinstance(inner, type):
        inner = type(inner).__call__
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        msg = f"{function!r} has no signature that can be read. Give a Python function, or a tool schema for it."
        raise InputError(msg) from error
    try:
        hints = typing.get_type_hints(inner, include_extras=True)
    except (NameError, TypeError):  # a name that only a type checker sees: the others are still read
        hints = dict(getattr(inner, "__annotations__", {}))
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    schemas: dict[str, Schema] = {}
    for name, parameter in signature.parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind in kinds or _injected(name, str(hint)):
            continue
        schemas[name] = (type_schema(hint) or {}) if isinstance(hint, str) else _hinted(hint)
        if parameter.default is not inspect.Parameter.empty:
            schemas[name]["default"] = parameter.default
    name = getattr(function, "__name__", inner.__name__)
    reply = hints.get("return", Any)
    reply = _hinted(reply) if not isinstance(reply, str) else {}
    return _assemble(name, read_docstring(inner.__doc__, list(schemas)), schemas, reply=reply, original=function)


def _injected(name: str, annotation: str) -> bool:
    """Say whether a framework fills the argument in; ``context: str`` is the model's to fill."""
    vague = annotation in ("", "Any", "typing.Any")
    return name in _BOUND or (name in _CONTEXTS and vague) or _INJECTED_TYPE.search(annotation) is not None


def _hinted(hint: Any) -> Schema:
    """Return the schema of a type hint, by pydantic; an empty one, which accepts anything, where it has none."""
    from pydantic import PydanticUserError, TypeAdapter

    try:
        schema = dict(TypeAdapter(hint).json_schema())
    except (PydanticUserError, TypeError, AttributeError):
        return {}
    said = [text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)]
    return {"description": said[0], **schema} if said else schema


def draft_source(text: str) -> Iterator[Any]:
    """Yield the tools of Python source: its literal lists of schemas, else its functions.

    Of several functions, those with a tool decorator count, else the public ones with a
    docstring, else all public ones; methods where there is no function.
    """
    tree = ast.parse(text)
    literals = [found for node in tree.body if (found := _literal_tools(node))]
    if literals:
        yield from literals
        return
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for body in (tree.body, [node for found in classes.values() for node in found.body]):
        functions = [
            node for node in body if isinstance(node, _DEFINITIONS) and node.name[0] != "_" and node.name != "main"
        ]
        marked = [f for f in functions if any(_MARKS.search(ast.unparse(d)) for d in f.decorator_list)]
        told = [f for f in functions if ast.get_docstring(f)]
        if functions:
            yield from (_draft_definition(f, classes) for f in marked or told or functions)
            return


def _literal_tools(node: ast.stmt) -> Any:
    """Return the value of ``TOOLS = [{...}]`` where it is a plain literal that looks like tools."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return None
    try:
        value = ast.literal_eval(node.value)
    except (ValueError, TypeError):
        return None
    by_name = isinstance(value, dict) and all(isinstance(tool, dict) for tool in value.values())
    items = list(value.values()) if by_name else value if isinstance(value, list) else [value]
    keys = [item.keys() if isinstance(item, dict) else set() for item in items]
    named = by_name or all(k & (_BOXES | {"name"}) for k in keys)
    return value if named and any(k & (_BOXES | _PARTS) for k in keys) else None


def _draft_definition(found: _Definition, classes: Classes) -> Draft:
    places = [*found.args.posonlyargs, *found.args.args]
    defaults = [None] * (len(places) - len(found.args.defaults)) + [*found.args.defaults]
    schemas: dict[str, Schema] = {}
    for place, default in [
        *zip(places, defaults, strict=True),
        *zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True),
    ]:
        if not _injected(place.arg, ast.unparse(place.annotation) if place.annotation else ""):
            schemas[place.arg] = annotation_schema(place.annotation, classes)
            if default is not None:
                schemas[place.arg]["default"] = next(iter(constants([default])), ...)
    calls = [d for d in found.decorator_list if isinstance(d, ast.Call)]
    said = {k.arg: k.value.value for call in calls for k in call.keywords if isinstance(k.value, ast.Constant)}
    doc = read_docstring(ast.get_docstring(found), list(schemas))
    doc.description = str(said.get("description_override") or said.get("description") or doc.description)
    name = str(said.get("name_override") or said.get("name") or found.name)
    stated = [last_name(argument).lower() for call in calls for argument in call.args]
    effect = next((word for word in stated if word in ("read", "write", "handoff", "compute")), None)
    reply = annotation_schema(found.returns, classes)
    return _assemble(name, doc, schemas, reply=reply, original=ast.unparse(found), effect=effect)


def _assemble(
    name: str,
    doc: Docstring,
    schemas: Mapping[str, Schema],
    *,
    reply: Schema,
    original: Any,
    effect: str | None = None,
) -> Draft:
    """Put signature and docstring together; the docstring's types count where the signature has none."""
    properties, definitions = {}, {}
    for argument, schema in schemas.items():
        definitions.update(schema.get("$defs", {}))
        told = {} if schema.keys() - {"default", "description"} else type_schema(doc.types.get(argument, "")) or {}
        about = {"description": doc.arguments[argument]} if doc.arguments.get(argument) else {}
        kept = schema if _plain(schema.get("default")) else {k: v for k, v in schema.items() if k != "default"}
        properties[argument] = {**told, **about, **kept}
    required = [argument for argument, schema in schemas.items() if "default" not in schema]
    telling = reply.keys() & {"properties", "enum", "items", "$ref"}  # 'dict' alone says nothing
    return Draft(
        name=name,
        description=doc.description,
        parameters={"type": "object", "properties": properties, "required": required, "$defs": definitions},
        returns=reply if telling else None,
        examples=doc.examples,
        effect=effect,
        original=original,
    )


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, dict))
