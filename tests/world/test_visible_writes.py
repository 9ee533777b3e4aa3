"""What was written can be read back: a table written by hand, from the tools' descriptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from world_sets import load_set

from whilesim.world.entities import infer_world
from whilesim.world.kinds import kind_of_key, properties
from whilesim.world.mock import MockWorld

TABLE = yaml.safe_load(Path(__file__).with_name("visible_writes.yaml").read_text(encoding="utf-8"))


def reading(world: MockWorld, read: str, key: str) -> str:
    """Call a read with what the focus tells of, and return the reply."""
    deed, made = world.model.deeds[read], {}
    for name in properties(world.model.tools[read]):
        kind = kind_of_key(name, world.model.kinds)[0]
        if name == deed.key:
            own = deed.kind and deed.kind != world.focus.kind
            native = world.records.get(deed.kind or "", {}).get(key, {}).get(deed.key, key)
            made[name] = native if not own else next((v for n, v in world.focus.arguments.items() if n == name), key)
        elif kind:
            record = world.records[world.focus.kind].get(key, {}) if world.focus.kind else {}
            made[name] = world.focus.arguments.get(name, record.get(name))
    if deed.kind == world.model.party and deed.key in made:
        party = world.model.kinds[deed.kind].key
        record = world.records[world.focus.kind].get(key, {}) if world.focus.kind else {}
        made[deed.key] = world.focus.arguments.get(party) or record.get(party)
    required = world.model.tools[read].parameters.get("required") or ()
    return world.call(read, {k: v for k, v in made.items() if v is not None or k in required})


def shows(world: MockWorld, write: str, read: str, field: str, value: str | None) -> bool:
    created = world.model.deeds[write].action == "create"
    before = reading(world, read, world.focus.id or "")
    world.call(write, world.focus.arguments)
    call = world.log[-1]
    if call.failed:
        return False
    after = reading(world, read, call.changes[0].id if created and call.changes else world.focus.id or "")
    if value == "gone":
        return bool(world.log[-1].failed)
    if value is None:
        return before != after and field in after
    found = json.loads(after)
    found = found[0] if isinstance(found, list) else found
    return str(found.get(field)).lower().replace("_", " ") == value.lower()


@pytest.mark.corpus
def test_nearly_every_write_is_seen_by_the_read_that_must_show_it(shared):
    missed = []
    for name, rows in TABLE.items():
        tools, policy = load_set(shared / name)
        model = infer_world(tools, policy)
        for write, (read, field, value) in rows.items():
            world = MockWorld(tools, policy, {"tool": write}, 7, model=model)
            if not shows(world, write, read, field, value):
                missed.append(f"{name}: {write} in {read}.{field}: {world.log[-1].reply[:120]}")
    total = sum(map(len, TABLE.values()))
    assert len(missed) <= 0.05 * total, "\n".join(missed)
