"""The docstrings are the table of contents, and the table of contents is the rule."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import whilesim

PACKAGE = Path(whilesim.__file__).parent
DATA = {"prompts", "pages", "words", "demo"}


def rooms(folder: Path) -> list[str]:
    """The names that a house's docstring lists, in order."""
    source = (folder / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r"^    (\w+)  ", ast.get_docstring(ast.parse(source), clean=False) or "", re.M)


def walk(folder: Path, prefix: str = "") -> list[str]:
    """All modules in street order, dotted."""
    found: list[str] = []
    for name in rooms(folder):
        if (folder / name).is_dir():
            found += walk(folder / name, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found


STREET = walk(PACKAGE)
HOUSES = [PACKAGE, *sorted(p.parent for p in PACKAGE.rglob("__init__.py") if p.parent != PACKAGE)]


def imported(path: Path) -> set[str]:
    """The package's own modules that a file imports, lazily or not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    return {n.module.removeprefix("whilesim.") for n in nodes if (n.module or "").startswith("whilesim.")}


@pytest.mark.parametrize("house", HOUSES, ids=lambda p: p.name)
def test_a_house_lists_the_rooms_that_exist(house: Path) -> None:
    modules = {p.stem for p in house.glob("*.py")} - {"__init__"}
    inner = {p.name for p in house.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert sorted(rooms(house)) == sorted(modules | inner)


@pytest.mark.parametrize("module", STREET)
def test_a_module_imports_only_those_before_it(module: str) -> None:
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    before = set(STREET[: STREET.index(module)])
    # a house whose __init__ exports lazily may be imported by its own name once all of it stands before
    whole = {m.rsplit(".", 1)[0] for m in before if "." in m}
    closed = {h for h in whole if not any(m.startswith(h + ".") for m in STREET[STREET.index(module) :])}
    assert imported(path) <= before | closed


def test_no_init_holds_code_but_the_lazy_ones() -> None:
    for house in HOUSES:
        body = ast.parse((house / "__init__.py").read_text(encoding="utf-8")).body
        if house.name not in ("whilesim", "checks"):
            assert len(body) == 1, house
            assert isinstance(body[0], ast.Expr), house
