"""Templates: prompts, pages and word lists, read from the package's own files.

A prompt is ``prompts/NAME.jinja``, a page ``pages/NAME.jinja``, a word list
``words/NAME.yaml``. A template that misses a value raises: no prompt is ever sent with a
hole in it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from whilesim.core.text import digest

_ROOT = Path(__file__).parent.parent


def render_prompt(name: str, **values: Any) -> str:
    """Fill ``prompts/<name>.jinja``: plain text, nothing escaped."""
    return str(_environment("prompts").get_template(f"{name}.jinja").render(**values)).strip()


def render_page(name: str, **values: Any) -> str:
    """Fill ``pages/<name>.jinja``: HTML, every value escaped unless it is marked safe."""
    return str(_environment("pages").get_template(f"{name}.jinja").render(**values))


@cache
def read_page(name: str) -> str:
    """Read a file of ``pages/`` as it is: a script or a workflow, nothing filled in."""
    return (_ROOT / "pages" / name).read_text(encoding="utf-8")


@cache
def load_words(name: str) -> Any:
    """Read ``words/<name>.yaml``; the caller must not change what it gets."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((_ROOT / "words" / f"{name}.yaml").read_text(encoding="utf-8"), loader)  # noqa: S506  both loaders are the safe ones


@cache
def prompts_digest() -> str:
    """Return one digest over all prompt files: part of a run's fingerprint."""
    files = sorted((_ROOT / "prompts").glob("*.jinja"))
    return digest("\n".join(f"{f.name}\n{f.read_text(encoding='utf-8')}" for f in files))


@cache
def _environment(folder: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    loader, escaped = FileSystemLoader(_ROOT / folder), folder == "pages"
    # prompts are plain text; pages are escaped
    return Environment(loader=loader, undefined=StrictUndefined, autoescape=escaped, **blocks)  # noqa: S701  see above
