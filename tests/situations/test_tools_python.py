"""Python functions, classes and source are read, never executed; OpenAPI operations become tools."""

from __future__ import annotations

import dataclasses
import functools
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import NotRequired, Required

from whilesim.core.errors import InputError
from whilesim.situations.tools import parse_tools

if TYPE_CHECKING:
    from nowhere import RunContext


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Shelf(BaseModel):
    """Find a shelf by its label."""

    label: str = Field(description="What is written on it")
    inner: Optional[Shelf] = None  # noqa: UP045  the older spelling must be read as well


def one(source: Any) -> Any:
    (tool,) = parse_tools(source)
    return tool


def google(context: RunContext, parcel_id: str, sizes: list[str], kind: Literal["a", "b"] = "a", note: Annotated[str, "Free text"] = "", **rest: Any) -> dict[str, Any]:  # fmt: skip
    """Move a parcel.

    The shelf stays reserved.

    Args:
        parcel_id: Which parcel,
            as printed on it.
        sizes (list of str): Sizes: all of them.

    Returns:
        What became of it.

    Example:
        >>> google('P1', ['s'], note='x')
        {'status': 'moved', 'steps': [1, 2]}
    """
    raise AssertionError("never executed")


def numpy(parcel_id, size=None):
    """Weigh a parcel.

    Parameters
    ----------
    parcel_id : str
        Which parcel.
    size : {'small', 'large'}, optional
        How big
        it is.

    Returns
    -------
    dict
        {"grams": 20}
    """


def test_a_google_docstring_is_read():
    tool = one(google)
    assert tool.name == "google"
    assert tool.description == "Move a parcel.\n\nThe shelf stays reserved."
    properties = tool.parameters["properties"]
    assert list(properties) == ["parcel_id", "sizes", "kind", "note"]
    assert properties["parcel_id"]["description"] == "Which parcel, as printed on it."
    assert properties["sizes"]["description"] == "Sizes: all of them."
    assert tool.parameters["required"] == ["parcel_id", "sizes"]
    arguments, reply = tool.examples[0]
    assert arguments == {"parcel_id": "P1", "sizes": ["s"], "note": "x"}
    assert reply == {"status": "moved", "steps": [1, 2]}


def test_type_hints_become_schemas():
    def move(parcel_id: str, sizes: list[str], kind: Literal["a", "b"] = "a", size: Size | None = None, note: Annotated[str, "Free text"] = "") -> Shelf:  # fmt: skip
        """Move it."""

    move.__annotations__ = {"parcel_id": str, "sizes": list[str], "kind": Literal["a", "b"], "size": Optional[Size], "note": Annotated[str, "Free text"], "return": Shelf}  # fmt: skip  # noqa: UP045
    properties = one(move).parameters["properties"]
    assert properties["sizes"] == {"type": "array", "items": {"type": "string"}}
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert properties["size"]["enum"] == ["small", "large", None]
    assert properties["note"] == {"description": "Free text", "default": "", "type": "string"}
    assert one(move).returns["properties"]["label"]["type"] == "string"


def test_a_numpy_docstring_gives_types_where_the_signature_has_none():
    tool = one(numpy)
    assert tool.parameters["properties"]["parcel_id"] == {"type": "string", "description": "Which parcel."}
    assert tool.parameters["properties"]["size"]["enum"] == ["small", "large"]
    assert tool.parameters["properties"]["size"]["description"] == "How big it is."
    assert tool.parameters["required"] == ["parcel_id"]
    assert tool.examples == (({}, {"grams": 20}),)


def test_methods_partials_and_callable_objects_are_functions_too():
    class Desk:
        def weigh_parcel(self, parcel_id: str) -> None:
            """Weigh a parcel."""

        def __call__(self, label: str) -> None:
            """Print a label."""

    tools = parse_tools([Desk().weigh_parcel, functools.partial(numpy, size="small"), Desk()])
    assert [t.name for t in tools] == ["weigh_parcel", "numpy", "__call__"]
    assert [t.parameters["required"] for t in tools] == [["parcel_id"], ["parcel_id"], ["label"]]


def test_a_context_that_a_framework_fills_in_is_no_argument_but_a_text_is():
    source = "def escalate(context{}, reason: str): 'Escalate.'"
    kinds = {"": ["reason"], ": ToolContext": ["reason"], ": str": ["context", "reason"]}
    for annotation, names in kinds.items():
        assert list(one(source.format(annotation)).parameters["properties"]) == names


def test_pydantic_classes_and_tool_objects_are_read():
    class Found:
        name, description, args_schema = "find_shelf", "Find a shelf.", Shelf

    for tool in parse_tools([Shelf, Found()]):
        assert tool.parameters["properties"]["label"]["description"] == "What is written on it"
        assert tool.parameters["properties"]["inner"]["type"] == ["object", "null"]
        assert tool.effect == "read"


def test_an_object_that_says_nothing_is_refused():
    with pytest.raises(InputError, match=r"tools\[0\] is <object"):
        parse_tools([object()])
    with pytest.raises(InputError, match="has no signature that can be read"):
        parse_tools([dict])


SOURCE = '''
import a_package_that_does_not_exist
raise RuntimeError("never executed")
SHELVES = [{"name": "Top shelf", "description": "Records of a make-believe store, not tools."}]
BY_ID = {"s1": {"name": "Top shelf", "description": "Nor are these."}}

def _hidden(a): "Not a tool."

def helper(a):
    pass

async def send_parcel(ctx: RunContextWrapper[Any], box: Box, size: Literal["small", "large"] = Size.SMALL, to: Optional[str] = None, *, tags: list[str] | None = None) -> dict:
    """Send a parcel.

    Args:
        box: What to send.
    """
'''


def test_source_is_read_without_importing_it():
    tool = one(SOURCE)
    assert (tool.name, tool.effect) == ("send_parcel", "write")
    properties = tool.parameters["properties"]
    assert list(properties) == ["box", "size", "to", "tags"]
    assert properties["box"] == {"description": "What to send."}
    assert properties["size"] == {"type": "string", "enum": ["small", "large"]}
    assert properties["to"] == {"type": ["string", "null"], "default": None}
    assert properties["tags"]["type"] == ["array", "null"]
    assert tool.parameters["required"] == ["box"]
    assert "a_package_that_does_not_exist" not in sys.modules


TYPES = '''
ORDER_ID = r"^OR\\d{5}$"
MOST = 3
Kind = Literal["a", "b"]
Employee: TypeAlias = Annotated[str, Field(pattern=ORDER_ID)]
Uid = NewType("Uid", str)
class Color(str, Enum):
    RED = "red"
    BLUE = "blue"
class Line(TypedDict, total=False):
    amount: Annotated[float, Field(gt=0)]
    again: list["Line"]
@dataclass
class Claim:
    lines: list[Line]
    note: str | None = None
    tags: list[str] = field(default_factory=list)
class Base(BaseModel):
    count: ClassVar[int] = 0
    iban: str = Field(min_length=15, pattern=r"^[A-Z]{2}")
class Account(Base):
    holder: NotRequired[str]
    codes: list[str] = Field(max_length=MOST)

def send_claim(kind: Kind, employee: Employee, uid: Uid, color: Color, claim: Claim, account: "Account", page: int = Field(ge=-1, description="Which page"), size: int = Field(default=3)) -> list[Claim]:
    """Send a claim."""
'''


def test_types_that_a_file_defines_are_read_from_it_and_none_is_executed():
    tool = one(TYPES)
    line = {"type": "object", "properties": {"amount": {"type": "number", "exclusiveMinimum": 0}, "again": {"type": "array", "items": {"type": "object"}}}, "required": []}  # fmt: skip
    claim = {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": line}, "note": {"type": ["string", "null"]}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["lines"],
    }  # fmt: skip
    assert tool.parameters["properties"] == {
        "kind": {"type": "string", "enum": ["a", "b"]},
        "employee": {"type": "string", "pattern": r"^OR\d{5}$"},
        "uid": {"type": "string"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "claim": claim,
        "account": {
            "type": "object",
            "properties": {
                "iban": {"type": "string", "minLength": 15, "pattern": "^[A-Z]{2}"},
                "holder": {"type": "string"},
                "codes": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            },
            "required": ["iban", "codes"],
        },
        "page": {"type": "integer", "minimum": -1, "description": "Which page"},
        "size": {"type": "integer", "default": 3},
    }
    assert tool.parameters["required"] == ["kind", "employee", "uid", "color", "claim", "account", "page"]
    assert tool.returns == {"type": "array", "items": claim}
    assert tool.notes == ("'Line' contains itself: cut at its second level",)


def test_a_type_that_is_not_read_is_noted_and_a_docstring_may_tell_it():
    tool = one("""
class Level(Enum):
    LOW = auto()

def find(mail: EmailStr, level: Level, code: Annotated[str, Field(pattern=make(), max_length=3)], box: Box, anything: Any, plain=1) -> Reply:
    '''Find it.

    Args:
        box (dict): What to find.
    '''
""")
    properties = tool.parameters["properties"]
    assert (properties["mail"], properties["level"], properties["code"]) == ({}, {}, {"type": "string", "maxLength": 3})
    assert properties["box"] == {"type": "object", "description": "What to find."}
    names = ["EmailStr", "Level", "make()"]
    assert tool.notes == tuple(f"type {name!r} is not read: any value is accepted there" for name in names)
    assert tool.returns is None


class Item(TypedDict):
    """Pydantic refuses it below Python 3.12."""

    sku: Annotated[str, Field(pattern="^S")]
    amount: float


@dataclasses.dataclass
class Basket:
    items: list[Item]
    named: dict[str, Item] | None = None


class Offer(TypedDict):
    sku: str
    note: NotRequired[str]


class Wish(TypedDict, total=False):
    sku: Required[str]
    note: str


@dataclasses.dataclass
class Crate:
    offers: list[Offer]
    wish: Wish
    made: ClassVar[int] = 0
    sealed: bool = dataclasses.field(default=False, init=False)


class Odd:
    pass


def test_a_typed_dict_anywhere_below_an_argument_is_read_and_what_is_not_is_noted():
    def pay(basket: Any, item: Any, odd: Any) -> None:
        """Pay it."""

    pay.__annotations__ = {"basket": Basket, "item": Annotated[Optional[Item], "The item"], "odd": Odd, "return": Odd}  # noqa: UP045
    tool = one(pay)
    properties = tool.parameters["properties"]
    assert properties["basket"]["properties"]["items"]["items"]["properties"]["sku"]["pattern"] == "^S"
    assert properties["basket"]["properties"]["named"]["additionalProperties"]["required"] == ["sku", "amount"]
    assert properties["basket"]["required"] == ["items"]
    assert (properties["item"]["type"], properties["item"]["description"]) == (["object", "null"], "The item")
    assert tool.notes == ("type 'Odd' is not read: any value is accepted there",)
    assert tool.returns is None


def test_marks_of_a_key_are_read_under_annotations_as_text_and_what_is_no_field_is_no_argument():
    def pack(crate: Any) -> None:
        """Pack it."""

    pack.__annotations__ = {"crate": Crate}
    crate = one(pack).parameters["properties"]["crate"]
    assert (list(crate["properties"]), crate["required"]) == (["offers", "wish"], ["offers", "wish"])
    for part in (crate["properties"]["offers"]["items"], crate["properties"]["wish"]):
        assert (list(part["properties"]), part["required"]) == (["sku", "note"], ["sku"])
        assert part["properties"]["note"]["type"] == "string"


def test_decorated_functions_are_the_tools_and_say_their_names_and_effects():
    source = """
@function_tool(name_override="lookup_parcel", description_override="Finds it.")
def a(x: int): "Ignored."
def b(x: int): "No tool."
"""
    assert [(t.name, t.description) for t in parse_tools(source)] == [("lookup_parcel", "Finds it.")]
    named = """
@functools.lru_cache(maxsize=1)
def _client(): ...
@tool("move_guest", args_schema=Move)
def _move(guest_id: str): "Moves a guest."
@tool(return_direct=True)
def call_warden(reason: str): "Calls the warden."
def helper(x: int): "No tool."
"""
    assert [t.name for t in parse_tools(named)] == ["move_guest", "call_warden"]
    cached = "@functools.cache\ndef tides(day: str): 'Tides.'\ndef rent(boat: str): 'Rents a boat.'"
    assert [t.name for t in parse_tools(cached)] == ["tides", "rent"]
    kit = '''
class Kit:
    @is_tool(ToolType.WRITE)
    def look(self, key: str):
        """Look."""
    def _private(self): ...
'''
    assert [(t.name, t.effect, t.effect_rule) for t in parse_tools(kit)] == [("look", "write", "given")]


OPENAPI = {
    "openapi": "3.0.3",
    "paths": {
        "/parcels/{parcelId}": {
            "parameters": [{"$ref": "#/components/parameters/Parcel"}],
            "get": {"operationId": "parcelGet", "summary": "Get a parcel", "responses": {"200": {"$ref": "#/components/responses/Parcel"}}},
            "patch": {
                "summary": "Change a parcel",
                "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}},
            },
        },
        "/parcels/search": {
            "post": {"operationId": "parcelSearch", "parameters": [{"name": "q", "in": "query", "schema": {"type": "string", "nullable": True}}, {"name": "X-Key", "in": "header", "schema": {}}]}
        },
        "/labels": {"post": {"operationId": "labels", "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}},
        "/void": {"post": {"operationId": "postVoid"}},
    },
    "components": {
        "parameters": {"Parcel": {"name": "parcelId", "in": "path", "required": True, "schema": {"type": "string"}}},
        "responses": {"Parcel": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Parcel"}, "example": {"grams": 5}}}}},
        "schemas": {
            "Parcel": {"type": "object", "properties": {"grams": {"type": "integer"}, "inside": {"$ref": "#/components/schemas/Parcel"}}},
            "Change": {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]},
        },
    },
}  # fmt: skip


def test_openapi_operations_become_tools():
    tools = {t.name: t for t in parse_tools(OPENAPI)}
    assert list(tools) == ["parcelGet", "patch_parcels_parcelId", "parcelSearch", "labels", "postVoid"]
    assert [t.effect for t in tools.values()] == ["read", "write", "read", "write", "write"]
    found = tools["parcelGet"]
    assert found.parameters["required"] == ["parcelId"]
    assert found.returns["properties"]["inside"] == {"type": "object"}
    assert found.examples == (({}, {"grams": 5}),)
    assert set(tools["patch_parcels_parcelId"].parameters["required"]) == {"parcelId", "label"}
    assert tools["parcelSearch"].parameters["properties"] == {"q": {"type": ["string", "null"]}}
    assert tools["labels"].parameters["required"] == ["body"]


def test_the_constants_of_a_file_stand_in_limits_and_nowhere_else() -> None:
    """What else they are, a key perhaps, is no part of a tool."""
    source = 'KEY = "sk-live-1"\n\n\ndef find(order: str) -> str:\n    """Find an order."""\n    return call(key=KEY)\n'
    assert "sk-live-1" not in repr(one(source))


@pytest.mark.parametrize(("given", "name"), [('"find_order"', "find_order"), ('"Use this to look up an order. Always ask for the id."', "look_up"), ("5", "look_up")])  # fmt: skip
def test_a_decorator_that_holds_a_sentence_names_no_tool(given: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.py"
    path.write_text(f'@tool({given})\ndef look_up(order_id: str) -> str:\n    """Look up an order."""\n')
    assert [t.name for t in parse_tools(path)] == [name]
