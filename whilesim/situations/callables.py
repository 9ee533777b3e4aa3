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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.text import shorten
from whilesim.situations.annotations import annotation_schema, definitions, field_schema, known, last_name, type_schema
from whilesim.situations.dialects import Draft
from whilesim.situations.docstrings import Docstring, read_docstring
from whilesim.situations.schemas import Schema, mapping, plain_schema

_CONTEXTS = frozenset({"ctx", "context", "tool_context", "run_context", "callback_context", "run_manager"})
_INJECTED_TYPE = re.compile(r"(Context(Wrapper)?|Ctx|RunnableConfig|Injected(State|ToolCallId|ToolArg))\b")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_MARKS = re.compile(r"(?<!func)tool|function|action|is_|mcp|command", re.IGNORECASE)
_PYTHON = re.compile(r"^(?:async def |def |class |@|import |from |\w+\s*(?::[^=\n]*)?=\s*[\[{])", re.MULTILINE)
_SCHEMA = re.compile(r"'(?:parameters|input_schema|inputSchema)':")


def is_python(text: str) -> bool:
    """Say whether a text is Python source with definitions in it."""
    with suppress(SyntaxError, ValueError):
        return _PYTHON.search(text) is not None and bool(ast.parse(text).body)
    return False


def draft_object(value: Any, where: str) -> Iterator[Any]:
    """Yield what a Python value says of a tool: a function, a class with a schema, a tool object.

    Raises:
        InputError: The value is none of these.
    """
    keys = ("args_schema", "params_json_schema", "inputSchema", "parameters")  # LangChain, Agents SDK, MCP
    schema = next((found for key in keys if (found := getattr(value, key, None))), None)
    if isinstance(getattr(value, "name", None), str) and isinstance(schema, (Mapping, type)):
        parameters = _hinted(schema) if isinstance(schema, type) else schema
        description = str(getattr(value, "description", "") or "")
        yield Draft(name=value.name, description=description, parameters=parameters, original=value)
    elif isinstance(value, type) and (getattr(value, "__annotations__", None) or hasattr(value, "model_fields")):
        doc = read_docstring(value.__doc__)
        yield Draft(name=value.__name__, description=doc.description, parameters=_hinted(value), original=value)
    elif callable(value):
        yield _draft_function(value)
    else:
        raise InputError(f"{where} is {shorten(repr(value), 80)}. Give a tool schema or a Python function.")


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
    places = []
    for name, place in signature.parameters.items():
        hint = hints.get(name, Any)
        if place.kind not in (place.VAR_POSITIONAL, place.VAR_KEYWORD) and not _injected(name, str(hint)):
            schema = type_schema(hint) or {} if isinstance(hint, str) else _hinted(hint)
            places.append(place.replace(annotation=schema))
    doc = read_docstring(inner.__doc__, [place.name for place in places])
    reply = {} if isinstance(hints.get("return"), str) else known(_hinted(hints.get("return", Any)))
    name = getattr(function, "__name__", inner.__name__)
    return _assemble(Draft(name=name, description=doc.description, original=function), doc, places, reply)


def _injected(name: str, annotation: str) -> bool:
    """Say whether a framework fills the argument in; ``context: str`` is the model's to fill."""
    vague = annotation in ("", "Any", "typing.Any")
    return name in ("self", "cls") or (name in _CONTEXTS and vague) or _INJECTED_TYPE.search(annotation) is not None


def _hinted(hint: Any, inside: tuple[Any, ...] = ()) -> Schema:
    """Return the schema of a type hint, by pydantic or else by hand; ``inside`` are the hints around it."""
    from pydantic import PydanticUserError, TypeAdapter

    try:
        if is_dataclass(hint) and not all(f.init for f in fields(hint)):
            raise TypeError("pydantic takes what is not given for an argument")
        schema = dict(TypeAdapter(hint).json_schema())
    except (PydanticUserError, TypeError, AttributeError):
        schema = {"$ref": getattr(hint, "__name__", str(hint))}  # leads nowhere, and is noted as such
        with suppress(NameError):  # a name inside that cannot be looked up
            schema = ({} if hint in inside else _by_hand(hint, (*inside, hint))) or schema
    said = [text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)]
    return {"description": said[0], **schema} if said else schema


def _by_hand(hint: Any, inside: tuple[Any, ...]) -> Schema:
    """Return what pydantic refuses: a typing.TypedDict before Python 3.12, and what holds one; else nothing."""

    def part(inner: Any) -> Schema:
        schema = _hinted(inner, inside)
        return plain_schema(schema, where=str(inner))[0] if "$defs" in schema else schema

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if typing.is_typeddict(hint) or (is_dataclass(hint) and isinstance(hint, type)):
        hints = typing.get_type_hints(hint, include_extras=True)
        if is_dataclass(hint):  # what is no field of it is no argument: a ClassVar
            hints = {f.name: hints[f.name] for f in fields(hint) if f.init}
        free = [f.name for f in fields(hint) if f.default is not f.default_factory] if is_dataclass(hint) else ()
        marks = {n: str(typing.get_origin(h)).rpartition(".")[2] for n, h in hints.items()}  # under annotations as text
        keys = {n for n in getattr(hint, "__required_keys__", hints) if marks.get(n) != "NotRequired"}
        required = [n for n in hints if (n in keys or marks[n] == "Required") and n not in free]
        return {"type": "object", "properties": {name: part(h) for name, h in hints.items()}, "required": required}
    if origin in (list, dict):
        kind, inner = ("array", "items") if origin is list else ("object", "additionalProperties")
        return {"type": kind, inner: part(parts[-1])}
    if origin in (typing.Union, UnionType):
        return {"anyOf": [part(inner) for inner in parts]}
    return part(parts[0]) if origin is typing.Annotated or str(origin).endswith("Required") else {}


def draft_source(text: str) -> Iterator[Any]:
    """Return the tools of Python source: its literal lists of schemas, else its functions.

    Of several functions, those with a tool decorator count, else the public ones with a
    docstring, else all public ones; methods where there is no function.
    """
    tree = ast.parse(text)
    if literals := [found for node in tree.body if (found := _literal_tools(node))]:
        return iter(literals)
    types = definitions(tree)
    given = re.findall(r"Tool(?:\.from_\w+)?\(\s*(?:func=|fn=)?(\w+)", text)  # StructuredTool.from_function(quote)
    methods = [node for found in tree.body if isinstance(found, ast.ClassDef) for node in found.body]
    for body in (tree.body, methods):
        functions = [node for node in body if isinstance(node, _Definition)]
        marked = [
            f for f in functions if f.name in given or _MARKS.search(" ".join(map(ast.unparse, f.decorator_list)))
        ]
        public = [f for f in functions if f.name[0] != "_"]
        if chosen := marked or [f for f in public if ast.get_docstring(f)] or public:
            return (_draft_definition(found, types) for found in chosen)
    return iter(())


def _literal_tools(node: ast.stmt) -> Any:
    """Return the value of ``TOOLS = [{...}]`` where it is a plain literal with schemas in it."""
    with suppress(ValueError, TypeError):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = ast.literal_eval(node.value)
            return value if isinstance(value, (list, dict)) and _SCHEMA.search(repr(value)) else None
    return None


def _draft_definition(found: _Definition, types: Mapping[str, Schema]) -> Draft:
    args = found.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    without = len(named) - len(args.kwonlyargs) - len(args.defaults)
    defaults = [*[None] * without, *args.defaults, *args.kw_defaults]
    read = [field_schema(a.annotation, default) for a, default in zip(named, defaults, strict=True)]
    places = [
        inspect.Parameter(a.arg, _KEYWORD, default=_default(default), annotation=schema)
        for a, (schema, default) in zip(named, read, strict=True)
        if not _injected(a.arg, ast.unparse(a.annotation) if a.annotation else "")
    ]
    calls = [d for d in found.decorator_list if isinstance(d, ast.Call)]
    said = {k.arg: k.value.value for call in calls for k in call.keywords if isinstance(k.value, ast.Constant)}
    first = [a.value for c in calls if last_name(c.func) == "tool" for a in c.args[:1] if isinstance(a, ast.Constant)]
    first = [a for a in first if isinstance(a, str) and re.fullmatch(r"[\w./:-]+(?: [\w-]+){0,5}!?", a)]  # no sentence
    stated = [last_name(argument).lower() for call in calls for argument in call.args]
    doc = read_docstring(ast.get_docstring(found), [place.name for place in places])
    draft = Draft(
        name=str(said.get("name_override") or said.get("name") or (*first, found.name)[0]), original=ast.unparse(found),
        description=str(said.get("description_override") or said.get("description") or doc.description),
        effect=next((word for word in stated if word in ("read", "write", "handoff", "compute")), None), document={"$defs": types},
    )  # fmt: skip
    return _assemble(draft, doc, places, known(annotation_schema(found.returns), types))


def _default(node: ast.expr | None) -> Any:
    """Return a default's value: Parameter.empty where there is none, and ``...`` where it is no constant."""
    if node is None:
        return inspect.Parameter.empty
    return node.value if isinstance(node, ast.Constant) else ...


def _assemble(draft: Draft, doc: Docstring, places: Sequence[inspect.Parameter], reply: Schema) -> Draft:
    """Put signature and docstring together; the docstring's types count where the signature has none."""
    properties, inner = {}, {}
    own = mapping(draft.document).get("$defs", {})
    for place in places:
        plain = known(place.annotation, own)  # a docstring says more than a name that nobody can read
        schema = place.annotation if plain else type_schema(doc.types.get(place.name, "")) or place.annotation
        inner.update(schema.get("$defs", {}))
        about = {"description": doc.arguments[place.name]} if doc.arguments.get(place.name) else {}
        constant = isinstance(place.default, (str, int, float, list, dict, type(None)))
        properties[place.name] = {**about, **schema, **({"default": place.default} if constant else {})}
    required = [place.name for place in places if place.default is place.empty]
    told = reply if reply.keys() & {"properties", "enum", "items", "$ref"} else None  # 'dict' alone says nothing
    parameters = {"type": "object", "properties": properties, "required": required, "$defs": inner}
    return replace(draft, parameters=parameters, returns=told, examples=doc.examples)
