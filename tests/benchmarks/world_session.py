"""What a world answers, to be read: a shop and a telephone company, call by call.

python tests/benchmarks/world_session.py [retail|telecom|FOLDER [SEED]]: a folder with tools.json and policy.md
prints every tool's one right call in a world where all works.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from world_sets import load_set

from whilesim.situations.tools import parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.mock import MockWorld
from whilesim.world.spec import WorldSpec

TAU2 = Path(__file__).parents[3] / "shared" / "tau2"


class Session:
    """Worlds over one tool set, and a print of every call."""

    def __init__(self, folder: Path, seed: int, spec: WorldSpec | None = None) -> None:
        self.tools, self.policy = load_set(folder)
        own = folder / "user_tools.json"
        self.own = parse_tools(json.loads(own.read_text(encoding="utf-8"))) if own.exists() else ()
        self.model = infer_world(self.tools, self.policy, spec, customer_tools=self.own)
        self.seed = seed
        self.world: MockWorld

    def open(self, title: str, **values: str) -> dict[str, Any]:
        """Begin a situation; return the arguments of its right call."""
        self.world = MockWorld(self.tools, self.policy, values, self.seed, model=self.model, customer_tools=self.own)
        print(f"\n## {title}\nthe customer: {self.world.focus.identity}\nknows: {self.world.focus.facts}")
        return dict(self.world.focus.arguments)

    def call(self, tool: str, **arguments: Any) -> Any:
        """Make one call, print it, and return the reply, parsed where it parses."""
        own = tool in {t.name for t in self.own}
        reply = (self.world.customer_call if own else self.world.call)(tool, arguments)
        print(f"{'customer' if own else 'agent'}> {tool}({json.dumps(arguments, ensure_ascii=False)})\n   {reply}")
        try:
            return json.loads(reply)
        except ValueError:
            return reply


def retail(seed: int) -> None:
    """Find, read, cancel, read, cancel again; missing, duplicate, timeout, stale."""
    shop = Session(TAU2 / "retail", seed)
    asked = shop.open("an order is cancelled", tool="cancel_pending_order", history="repeat_visit")
    email = shop.world.focus.identity["email"]
    user = shop.call("find_user_id_by_email", email=email)
    shop.call("get_user_details", user_id=user)
    order = shop.call("get_order_details", order_id=asked["order_id"])
    shop.call("get_product_details", product_id=order["items"][0]["product_id"])
    shop.call("get_item_details", item_id=order["items"][0]["item_id"])
    shop.call("list_all_product_types")
    for tool, given in (
        ("cancel_pending_order", asked),
        ("get_order_details", {"order_id": asked["order_id"]}),
        ("cancel_pending_order", asked),
    ):
        shop.call(tool, **given)
    asked = shop.open("an order that is not there", tool="get_order_details", world_state="missing")
    shop.call("get_order_details", **asked)
    two = [{"user_id": f"ana_ruiz_{n}", "first_name": "Ana", "last_name": "Ruiz", "email": f"ana.ruiz{n}@example.com",
            "default_address": {"zip": "97201"}, "updated_at": "2026-01-12 10:00:00", "notes": []} for n in (118, 640)]  # fmt: skip
    twins = Session(TAU2 / "retail", seed, WorldSpec(records={"user": two}))
    twins.open("a name that two customers have", tool="find_user_id_by_name_zip")
    for user_id in twins.call("find_user_id_by_name_zip", first_name="Ana", last_name="Ruiz", zip="97201"):
        twins.call("get_user_details", user_id=user_id)
    twins.call("find_user_id_by_email", email=two[1]["email"])
    asked = shop.open("two orders", tool="return_delivered_order_items", world_state="duplicate")
    for order_id in shop.call("get_user_details", user_id=shop.world.focus.facts["user id"])["orders"]:
        shop.call("get_order_details", order_id=order_id)
    shop.call("return_delivered_order_items", **asked)
    for n in range(40):
        shop.seed = n
        world = MockWorld(
            shop.tools, shop.policy, {"tool": "get_order_details", "tool_condition": "timeout"}, n, model=shop.model
        )
        if world.focus.reachable:
            break
    asked = shop.open("a timeout that passes", tool="get_order_details", tool_condition="timeout")
    for _ in range(2):
        shop.call("get_order_details", **asked)
    asked = shop.open("a stale answer", tool="get_order_details", tool_condition="stale")
    for _ in range(3):
        shop.call("get_order_details", **asked)


def telecom(seed: int) -> None:
    """A bill is asked for and paid on the customer's phone; switches; lookups."""
    phones = Session(TAU2 / "telecom", seed)
    asked = phones.open("a bill is paid", tool="send_payment_request", history="prior_failure")
    phones.call("get_customer_by_phone", phone_number=phones.world.focus.identity["phone"])
    phones.call("get_bills_for_customer", customer_id=asked["customer_id"])
    phones.call("check_payment_request")
    phones.call("send_payment_request", **asked)
    phones.call("send_payment_request", **asked)
    phones.call("check_payment_request")
    phones.call("make_payment")
    phones.call("get_details_by_id", id=asked["bill_id"])
    phones.call("make_payment")
    asked = phones.open("data is added", tool="refuel_data")
    line = {k: asked[k] for k in ("customer_id", "line_id")}
    phones.call("get_details_by_id", id=line["line_id"])
    phones.call("get_data_usage", **line)
    phones.call("refuel_data", **asked)
    phones.call("get_data_usage", **line)
    phones.call("suspend_line", **line, reason="lost")
    phones.call("suspend_line", **line, reason="lost")
    phones.call("resume_line", **line)
    for tool in phones.own:
        if not tool.parameters.get("properties"):
            phones.call(tool.name)
    phones.call("set_network_mode_preference", mode="4g_5g_preferred")
    phones.call("check_network_mode_preference")
    phones.call("check_app_status", app_name="messaging")
    phones.call("grant_app_permission", app_name="messaging", permission="sms")
    phones.call("check_app_permissions", app_name="messaging")


def every_tool(folder: Path, seed: int) -> None:
    """Every tool's right call in a world of its own, twice."""
    session = Session(folder, seed)
    for tool in session.tools:
        asked = session.open(tool.name, tool=tool.name)
        session.call(tool.name, **asked)


if __name__ == "__main__":
    chosen, seed = (sys.argv[1:2] or ["both"])[0], int((sys.argv[2:3] or ["3"])[0])
    if Path(chosen).is_dir():
        every_tool(Path(chosen), seed)
    for name, part in (("retail", retail), ("telecom", telecom)):
        if chosen in (name, "both"):
            part(seed)
