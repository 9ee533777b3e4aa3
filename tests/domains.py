"""The domains that benchmarks play: the bundled one, and those of ../shared that are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whilesim.showcase import demo_policy, demo_tools

TAU2 = Path(__file__).parent.parent.parent / "shared" / "tau2"


def domains() -> list[tuple[str, str, Any]]:
    """Name, policy and tools of each domain that is at hand."""
    found = [("demo", demo_policy(), demo_tools())]
    for name in ("telecom", "retail", "airline"):
        folder = TAU2 / name
        if folder.is_dir():
            text = (folder / "policy.md").read_text(encoding="utf-8")
            found.append((name, text, json.loads((folder / "tools.json").read_text(encoding="utf-8"))))
    return found
