"""OpenAPI: the operations of an OpenAPI document as tools.

Path and query parameters and the fields of the body become arguments; headers and cookies are
the caller's business and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from whilesim.core.errors import InputError
from whilesim.core.text import name_words
from whilesim.situations.dialects import Draft
from whilesim.situations.schemas import listed, mapping, plain_schema, point

_SEARCHES = frozenset({"search", "query", "find", "filter", "lookup", "list", "read", "get", "count", "preview"})
_Node = Mapping[str, Any]
_METHODS = ("get", "head", "post", "put", "patch", "delete")


def is_openapi(source: Mapping[str, Any]) -> bool:
    """Say whether a mapping is an OpenAPI document."""
    return "openapi" in source or isinstance(source.get("paths"), Mapping)


def draft_operations(document: Mapping[str, Any]) -> Iterator[Draft]:
    """Yield one draft for each operation of the document, in its order.

    Raises:
        InputError: The document has no operation.
    """
    paths = mapping(document.get("paths")).items()
    places = [(path, item, key) for path, item in paths for key in mapping(item) if key in _METHODS]
    found = [_draft(document, *place) for place in places if isinstance(place[1][place[2]], Mapping)]
    if not found:
        msg = "the OpenAPI document has no operation under 'paths'. Give a document with paths, or a list of tool schemas."
        raise InputError(msg)
    yield from found


def _draft(document: Mapping[str, Any], path: str, item: Mapping[str, Any], method: str) -> Draft:
    operation = item[method]
    name = str(operation.get("operationId") or re.sub(r"\W+", "_", f"{method}{path}").strip("_"))
    given = [_resolved(document, p) for p in listed(item.get("parameters")) + listed(operation.get("parameters"))]
    named = {str(p["name"]): p for p in given if p.get("in") in ("path", "query") and "name" in p}
    arguments = {n: {**{k: p[k] for k in ("description", "example") if k in p}, **_schema(p)} for n, p in named.items()}
    required = [n for n, p in named.items() if p.get("required") or p["in"] == "path"]
    if body := _resolved(document, operation.get("requestBody")):
        fields, needed = _body_fields(document, body, where=f"tool {name!r}")
        arguments = {**fields, **arguments}
        required += needed
    returns, examples = _reply(document, operation)
    return Draft(
        name=name, document=document, returns=returns, examples=examples, method=method.upper(),
        description="\n".join(str(operation[key]) for key in ("summary", "description") if operation.get(key)),
        parameters={"type": "object", "properties": arguments, "required": required}, effect=operation.get("x-effect"),
        annotations={"readOnlyHint": True} if method == "post" and _only_reads(path, operation) else {},
        original={"path": path, "method": method, **operation},
    )  # fmt: skip


def _only_reads(path: str, operation: Mapping[str, Any]) -> bool:
    """Say whether a POST asks for reading scopes alone, or its path ends in a word such as ``search``."""
    needs = [names for need in listed(operation.get("security")) for names in mapping(need).values()]
    if scopes := [set(name_words(str(scope))) for names in needs for scope in listed(names)]:
        return all(scope & {"read", "readonly", "view"} for scope in scopes)
    return bool(set(name_words(path.rsplit("/", 1)[-1])) & _SEARCHES)


def _body_fields(document: _Node, body: _Node, *, where: str) -> tuple[dict[str, Any], list[str]]:
    """Return a body's fields and which are required; a body without named fields is one, ``body``."""
    schema, _ = plain_schema(_schema(body), where=where, document=document)
    if schema.get("properties"):
        return schema["properties"], schema.get("required", [])
    about = str(body.get("description") or "The body of the request.")
    return {"body": {"description": about, **schema}}, ["body"] if body.get("required") else []


def _reply(document: _Node, operation: _Node) -> tuple[Any, tuple[tuple[_Node, Any], ...]]:
    """Return the schema and the example of the first successful response."""
    responses = {str(code): response for code, response in mapping(operation.get("responses")).items()}
    good = min((code for code in responses if code.startswith("2")), default=None)
    response = _resolved(document, responses[good]) if good else {}
    content = _content(response)
    shown = [mapping(example).get("value") for example in mapping(content.get("examples")).values()]
    shown = [content["example"]] if "example" in content else shown
    return _schema(response) or None, tuple(({}, reply) for reply in shown[:1])


def _content(body: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds = mapping(body.get("content"))
    return mapping(kinds.get("application/json") or next(iter(kinds.values()), {}))


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(body.get("schema") or _content(body).get("schema"))


def _resolved(document: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    """Follow the reference of a parameter, body or response; what leads nowhere is empty."""
    found = mapping(node)
    return mapping(point(document, found["$ref"])) if isinstance(found.get("$ref"), str) else found
