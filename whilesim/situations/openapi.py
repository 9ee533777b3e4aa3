"""OpenAPI: the operations of an OpenAPI (or Swagger 2) document as tools.

Path and query parameters and the fields of the body become arguments; headers and cookies are
the caller's business and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from whilesim.core.errors import InputError
from whilesim.situations.dialects import Draft
from whilesim.situations.schemas import listed, mapping, plain_schema, point

_ARGUMENTS = ("path", "query", "formData")
_OUTSIDE = ("name", "in", "schema", "required", "content", "style", "explode", "allowEmptyValue", "deprecated")
_METHODS = ("get", "head", "post", "put", "patch", "delete")


def is_openapi(source: Mapping[str, Any]) -> bool:
    """Say whether a mapping is an OpenAPI or Swagger document."""
    return "openapi" in source or "swagger" in source or isinstance(source.get("paths"), Mapping)


def draft_operations(document: Mapping[str, Any]) -> Iterator[Draft]:
    """Yield one draft for each operation of the document, in its order.

    Raises:
        InputError: The document has no operation.
    """
    found = [
        _draft(document, path, item, method)
        for path, item in mapping(document.get("paths")).items()
        for method in mapping(item)
        if method in _METHODS and isinstance(item[method], Mapping)
    ]
    if not found:
        msg = "the OpenAPI document has no operation under 'paths'. Give a document with paths, or a list of tool schemas."
        raise InputError(msg)
    yield from found


def _draft(document: Mapping[str, Any], path: str, item: Mapping[str, Any], method: str) -> Draft:
    operation = item[method]
    name = str(operation.get("operationId") or re.sub(r"\W+", "_", f"{method}{path}").strip("_"))
    given = [_resolved(document, p) for p in listed(item.get("parameters")) + listed(operation.get("parameters"))]
    named = {str(p["name"]): p for p in given if p.get("in") in _ARGUMENTS and "name" in p}
    arguments = {n: {**{k: v for k, v in p.items() if k not in _OUTSIDE}, **_schema(p)} for n, p in named.items()}
    required = [n for n, p in named.items() if p.get("required") or p["in"] == "path"]
    body = _resolved(document, operation.get("requestBody")) or next((p for p in given if p.get("in") == "body"), {})
    if body:
        fields, needed = _body_fields(document, body, where=f"tool {name!r}")
        arguments = {**fields, **arguments}
        required += needed
    returns, examples = _reply(document, operation)
    schemes = [mapping(s) for s in listed(operation.get("security", document.get("security")))]
    return Draft(
        name=name,
        description="\n".join(str(operation[key]) for key in ("summary", "description") if operation.get(key)),
        parameters={"type": "object", "properties": arguments, "required": required},
        document=document,
        returns=returns,
        examples=examples,
        effect=operation.get("x-effect"),
        method=method.upper(),
        path=path,
        scopes=tuple(scope for scheme in schemes for scopes in scheme.values() for scope in listed(scopes)),
        original={"path": path, "method": method, **operation},
    )


def _body_fields(
    document: Mapping[str, Any], body: Mapping[str, Any], *, where: str
) -> tuple[dict[str, Any], list[str]]:
    """Return a body's fields and which are required; a body without named fields is one, ``body``."""
    schema, _ = plain_schema(_schema(body), where=where, document=document)
    if schema.get("properties"):
        return schema["properties"], schema.get("required", []) if body.get("required", True) else []
    about = str(body.get("description") or "The body of the request.")
    return {"body": {"description": about, **schema}}, ["body"] if body.get("required") else []


def _reply(
    document: Mapping[str, Any], operation: Mapping[str, Any]
) -> tuple[Any, tuple[tuple[Mapping[str, Any], Any], ...]]:
    """Return the schema and the example of the first successful response."""
    responses = {str(code): response for code, response in mapping(operation.get("responses")).items()}
    good = min((code for code in responses if code.startswith("2")), default=None)
    response = _resolved(document, responses[good]) if good else {}
    content = _content(response)
    named = mapping(content.get("examples") or response.get("examples"))
    shown = [e.get("value", e) if isinstance(e, Mapping) else e for e in named.values()]
    shown = [content["example"]] if "example" in content else shown
    return _schema(response) or None, tuple(({}, reply) for reply in shown[:1])


def _content(body: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds = mapping(body.get("content"))
    return mapping(kinds.get("application/json") or next(iter(kinds.values()), {}))


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(body.get("schema") or _content(body).get("schema"))


def _resolved(document: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    """Follow the reference of a parameter, body or response; what leads nowhere is empty."""
    for _ in range(9):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            break
        node = point(document, node["$ref"])
    return mapping(node)
