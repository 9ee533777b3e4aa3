"""A world made of nothing but tools and a policy: reads, writes, faults, states, and the oracle above them."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from world_sets import SETS, SHARED, compare_truth, digest, ill_formed, load_set, open_set, play, tool, violations

from whilesim.core.errors import InputError
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Clause, Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.focus import Focus
from whilesim.world.kinds import describe_field
from whilesim.world.live import live
from whilesim.world.mock import MockWorld
from whilesim.world.oracle import build_oracle
from whilesim.world.spec import WorldSpec

CONDITIONS = ("success", "timeout", "malformed", "stale", "permission_denied")
STATES = ("exists", "missing", "already_acted_on", "duplicate", "partially_completed")


@pytest.fixture(scope="module")
def demo():
    folder = Path(__import__("whilesim").__file__).parent / "demo"
    tools = parse_tools(json.loads((folder / "tools.json").read_text(encoding="utf-8")))
    policy = parse_policy((folder / "policy.md").read_text(encoding="utf-8"), tools=tools)
    return tools, policy, infer_world(tools, policy)


def world_of(demo, seed=0, **values):
    tools, policy, model = demo
    return MockWorld(tools, policy, values, seed, model=model)


def test_a_suspended_line_reads_back_suspended_and_is_not_suspended_twice(demo):
    world = world_of(demo, tool="suspend_line")
    line = world.focus.arguments["line_id"]
    assert not world.log
    world.call("suspend_line", world.focus.arguments)
    assert json.loads(world.call("get_line", {"line_id": line}))["status"] == "Suspended"
    world.call("suspend_line", world.focus.arguments)
    assert [c.failed for c in world.log] == [False, False, True]
    changed = {(c.kind, c.field): (c.before, c.after) for c in world.log[0].changes}
    assert changed["line", "status"] == ("Active", "Suspended")
    assert changed["line", "suspend_reason"][1] == world.focus.arguments["reason"]


def test_a_customer_is_found_by_a_phone_by_a_line_s_phone_and_by_name_with_birthday(demo):
    world = world_of(demo, tool="get_line")
    line = world.records["line"][world.focus.id]
    owner = world.records["customer"][line["customer_id"]]
    by_name = {"full_name": owner["full_name"].upper(), "date_of_birth": owner["date_of_birth"]}
    for name, arguments in (
        ("find_customer_by_phone", {"phone_number": owner["phone_number"]}),
        ("find_customer_by_phone", {"phone_number": line["phone_number"]}),
        ("find_customer_by_name", by_name),
    ):
        assert json.loads(world.call(name, arguments))["customer_id"] == owner["customer_id"]
    assert line["line_id"] in json.loads(world.call("get_customer", {"customer_id": owner["customer_id"]}))["line_ids"]
    world.call("find_customer_by_name", by_name | {"date_of_birth": "1900-01-01"})
    assert world.log[-1].failed


def test_a_payment_of_another_amount_is_refused_and_changes_nothing(demo):
    world = world_of(demo, tool="pay_bill")
    before = json.dumps(world.state)
    reply = world.call("pay_bill", {**world.focus.arguments, "amount": world.focus.arguments["amount"] + 5})
    assert world.log[-1].failed
    assert "mount" in reply
    assert json.dumps(world.state) == before


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"line_id": "L1"}, "reason"), ({"line_id": 7, "reason": "cost"}, "line_id"), ({"line_id": "L1", "reason": "x"}, "reason"),
     ({"line_id": "L1", "reason": "cost", "colour": 1}, "colour")],
)  # fmt: skip
def test_wrong_arguments_are_refused_by_the_name_of_the_field(demo, arguments, field):
    world = world_of(demo, tool="suspend_line")
    assert field in world.call("suspend_line", arguments)
    assert world.log[-1].failed


def test_text_that_is_no_json_and_tools_that_are_not_there_get_an_error(demo):
    world = world_of(demo)
    world.call("get_line", '{"line_id": ')
    world.call("fly", {})
    assert [c.failed for c in world.log] == [True, True]
    assert world.log[0].arguments == '{"line_id": '


def test_arithmetic_is_computed_and_nothing_else_is_executed():
    world = MockWorld([tool("calculate", "Calculate.", "compute", expression="string")])
    assert world.call("calculate", {"expression": "(2 + 3) * 4 / 8"}) == "2.5"
    for text in ("__import__('os').getcwd()", "9 ** 9 ** 9", "1 / 0", "a + 1", "'x' * 9"):
        world.call("calculate", {"expression": text})
        assert world.log[-1].failed


def test_the_same_names_draw_the_same_world_and_others_another(demo):
    first, again, other = (world_of(demo, seed, tool="get_bill") for seed in (3, 3, 4))
    assert first.state == again.state
    assert first.focus == again.focus
    assert first.state != other.state
    tools, policy, model = demo
    twin = [
        MockWorld(tools, policy, Situation(id="s1", values={"tool": "get_bill", "world_state": s}), 3, model=model)
        for s in STATES[:2]
    ]
    gone = {k for kind in twin[0].records for k in twin[0].records[kind]} - {
        k for kind in twin[1].records for k in twin[1].records[kind]
    }
    assert gone == {twin[0].focus.id}


def test_worlds_are_the_same_bytes_in_every_process_under_every_hash_seed_and_in_every_order():
    names = ["demo", *(n for n in ("tau2/retail", "corpus/07-german-voice-agent-mcp") if (SHARED / n).is_dir())]
    code = "import sys; from world_sets import digest; print(*[digest(n, backwards=True) for n in sys.argv[1:]])"
    told = subprocess.run(
        [sys.executable, "-c", code, *names],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        capture_output=True,
        check=True,
        text=True,
    )
    here = [digest(name) for name in names]
    assert told.stdout.split() == here
    assert len(set(here)) == len(names)


def test_a_missing_record_is_gone_and_what_belonged_to_it_too(demo):
    world = world_of(demo, tool="get_customer", world_state="missing")
    assert world.focus.id not in world.records["customer"]
    assert all(r["customer_id"] != world.focus.id for kind in ("line", "bill") for r in world.records[kind].values())
    assert world.focus.facts["customer id"] == world.focus.id
    assert not world.focus.reachable


def test_what_was_already_done_reads_so_and_is_refused(demo):
    world = world_of(demo, tool="suspend_line", world_state="already_acted_on")
    assert world.records["line"][world.focus.id]["status"] == "Suspended"
    world.call("suspend_line", world.focus.arguments)
    assert world.log[-1].failed


def test_a_double_differs_in_what_the_customer_can_say_and_has_no_key_in_the_facts(demo):
    world = world_of(demo, tool="get_bill", world_state="duplicate")
    bills = [
        b
        for b in world.records["bill"].values()
        if b["customer_id"] == world.records["bill"][world.focus.id]["customer_id"]
    ]
    assert "bill id" not in world.focus.facts
    told = [
        b
        for b in bills
        if all(str(v) in map(str, b.values()) for k, v in world.focus.facts.items() if k not in ("customer id",))
    ]
    assert [b["bill_id"] for b in told] == [world.focus.id]


def test_a_one_stop_search_returns_two_legs_that_meet():
    place = {"type": "string", "description": "Airport, such as 'JFK'."}
    tools = [
        tool("search_onestop_flight", "Search one-stop flights.", origin=place, destination=place, date="string"),
        tool("get_flight", flight_number="string"),
    ]
    world = MockWorld(tools)
    asked = {"origin": "SFO", "destination": "BOS", "date": "2026-05-01"}
    legs = json.loads(world.call("search_onestop_flight", asked))[0]
    assert (legs[0]["origin"], legs[1]["destination"]) == ("SFO", "BOS")
    assert legs[0]["destination"] == legs[1]["origin"]
    assert json.loads(world.call("search_onestop_flight", asked))[0] == legs
    assert json.loads(world.call("get_flight", {"flight_number": legs[1]["flight_number"]}))["destination"] == "BOS"


def test_history_stands_in_the_notes_that_other_records_have_too(demo):
    world = world_of(demo, tool="get_bill", history="repeat_visit")
    assert "asked about the same bill before" in str(world.records["bill"][world.focus.id]["notes"])
    assert sum("notes" in r for kind in world.records for r in world.records[kind].values()) > 2


@pytest.mark.parametrize("seed", range(6))
def test_a_timeout_passes_on_retry_or_never_and_the_world_knows(demo, seed):
    world = world_of(demo, seed, tool="get_line", tool_condition="timeout")
    for _ in range(5):
        world.call("get_line", world.focus.arguments)
    failed = [c.failed for c in world.log]
    assert failed[0]
    assert failed == sorted(failed, reverse=True)
    assert world.focus.reachable == (not failed[-1])
    world.call("list_plans", {})
    assert not world.log[-1].failed


def test_malformed_replies_are_of_several_kinds_and_never_parse_as_the_record(demo):
    seen = set()
    for seed in range(24):
        world = world_of(demo, seed, tool="get_line", tool_condition="malformed")
        reply = world.call("get_line", world.focus.arguments)
        assert world.log[-1].failed
        assert '"line_id"' not in reply or not _parses(reply)
        seen.add(reply[:5])
    assert len(seen) >= 4


def test_a_stale_reply_is_an_older_state_of_the_same_record(demo):
    world = world_of(demo, 2, tool="get_line", tool_condition="stale")
    replies = [json.loads(world.call("get_line", world.focus.arguments)) for _ in range(4)]
    assert replies[0]["status"] != replies[-1]["status"]
    assert replies[0]["updated_at"] < replies[-1]["updated_at"]
    assert set(replies[0]) == set(replies[-1])
    assert not any(c.failed for c in world.log)


def test_errors_read_alike_in_one_world_and_differ_between_worlds(demo):
    told = {
        world_of(demo, seed, tool="get_line", world_state="missing").call("get_line", {"line_id": "L00000"})
        for seed in range(12)
    }
    assert len(told) >= 4


def test_the_customer_s_tools_act_on_the_records_that_the_agent_wrote(shared):
    tools, policy = load_set(shared / "tau2" / "telecom")
    own = parse_tools(json.loads((shared / "tau2" / "telecom" / "user_tools.json").read_text(encoding="utf-8")))
    world = MockWorld(tools, policy, {"tool": "send_payment_request"}, 3, customer_tools=own)
    assert world.customer_call("check_payment_request", {}) == "[]"
    world.call("send_payment_request", world.focus.arguments)
    assert world.focus.id in world.customer_call("check_payment_request", {})
    world.customer_call("make_payment", {})
    assert json.loads(world.call("get_details_by_id", {"id": world.focus.id}))["status"] == "Paid"
    states = [world.customer_call("toggle_airplane_mode", {}) for _ in range(2)]
    assert states[0] != states[1]
    world.call("toggle_airplane_mode", {})
    assert world.log[-1].failed


def test_what_was_inferred_is_printed_and_given_back(demo, tmp_path):
    tools, policy, model = demo
    path = tmp_path / "world.yaml"
    path.write_text(model.describe(), encoding="utf-8")
    assert infer_world(tools, policy, WorldSpec.from_yaml(path)).describe().count("\n") == model.describe().count("\n")
    assert "# attribute list in the policy" in model.describe()
    path.write_text(model.describe().replace('pre: ["Suspended"]', 'pre: ["Closed"]'), encoding="utf-8")
    assert infer_world(tools, policy, WorldSpec.from_yaml(path)).deeds["resume_line"].before == ("Closed",)


def test_a_spec_s_records_examples_and_schemas_shape_the_replies():
    tools = [tool("get_order", "Get an order.", order_id="string")]
    spec = WorldSpec(
        records={"order": [{"order_id": "A-1", "status": "shipped", "colour": "red"}]},
        returns={"get_order": {"type": "object", "properties": {"id": {"type": "string"}, "status": {"enum": ["shipped", "open"]},
                 "weight": {"type": "number"}}, "required": ["id", "status", "weight"]}},
    )  # fmt: skip
    reply = json.loads(MockWorld(tools, spec=spec).call("get_order", {"order_id": "A-1"}))
    assert (reply["id"], reply["status"]) == ("A-1", "shipped")
    assert reply["weight"] > 0
    shown = WorldSpec(
        records=spec.records,
        examples={"get_order": [({"order_id": "X"}, {"orderId": "X", "state": "ok", "colour": "blue"})]},
    )
    assert json.loads(MockWorld(tools, spec=shown).call("get_order", {"order_id": "A-1"}))["colour"] == "red"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: WorldSpec(tools=[1]), r"'tools' is list, and must map names to values"),
        (lambda: WorldSpec(tools={"x": {"action": "fly"}}), "the action of 'x' is 'fly'; it must be one of get, list"),
        (lambda: WorldSpec(entities={"order": 3}), r"has 3 for 'order', which is no mapping"),
        (lambda: WorldSpec(tools={"pay": {"effect": "rite"}}), r"effect of 'pay' is 'rite'; it must be one of"),
        (lambda: MockWorld([]), "at least one tool"),
        (lambda: MockWorld([tool("a")], situation={"tool": "b"}), "tool is 'b', and no such tool"),
        (
            lambda: MockWorld([tool("get_user", user_id="string")], spec=WorldSpec(locale="xx_YY")),
            "no names are known for the locale 'xx_YY'",
        ),
        (lambda: live([3]), "3 is no plain function"),
    ],
)
def test_what_cannot_work_is_said_with_what_to_type(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_a_spec_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "w.yaml"
    for text, match in (("a: [", "is not YAML"), ("colour: red", "holds 'colour', which no world has")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=match):
            WorldSpec.from_yaml(path)


NODE = {"type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/Node"}}}
CYCLE = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": NODE},
    "required": ["node"],
}
TIGHT = {
    "ids": {"type": ["array", "null"], "items": {"type": "integer"}, "minItems": 2},
    "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "share": {"type": "number", "minimum": 5, "maximum": 6},
    "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    "always": {"const": 4},
}


@pytest.mark.parametrize(
    "tools",
    [
        [tool("ping"), tool("cancel_it", effect="write"), tool("toggle", effect="write")],
        parse_tools([{"name": "save_tree", "description": "Save.", "parameters": CYCLE}, {"name": "get_tree", "parameters": {}}]),
        [tool(f"{verb}_thing_{n}", effect=effect, **{f"thing_{n}_id": "string"}) for n in range(32) for verb, effect in (("get", "read"), ("cancel", "write"))],
        [tool("obtener_pedido", "Obtiene un pedido.", pedido_id="string"), tool("cancelar_pedido", "Cancela.", "write", pedido_id="string")],
        [tool("查询订单", "查询订单", 订单号="string"), tool("取消订单", "取消订单", "write", 订单号="string"), tool("转人工", "转人工客服", "handoff")],
        [tool("set_level", "Set it.", "write", level={"type": "string", "enum": ["only"]}), tool("read_level", level={"enum": [None]})],
        [tool("set_level", "Set it.", "write", level={"type": "string", "enum": []}), tool("set_mood", "", "write", mood="string")],
        [tool("x", effect="write", a={}, b={"type": ["string", "null"]}, c={"anyOf": [{"type": "integer"}, {"type": "null"}]})],
        [tool("adjust", "Adjust it.", "write", **TIGHT)],
        [tool("send", effect="write", to="string"), tool("list"), tool("delete_all", effect="write")],
        [tool("get_self", **{"self": "string", "class": "string"}), tool("_", _="string"), tool("1", "", "write", **{"2": "string"})],
        [tool("transfer_to_human", effect="handoff", reason="string")],
    ],
)  # fmt: skip
def test_odd_tools_make_a_world_and_never_a_crash(tools):
    model = infer_world(tools)
    for one, state, condition in itertools.product(tools[:4], STATES, CONDITIONS):
        values = {"tool": one.name, "world_state": state, "tool_condition": condition, "history": "prior_failure"}
        world = MockWorld(tools, None, values, 1, model=model)
        world.call(one.name, world.focus.arguments)
        if (state, condition) == ("exists", "success") and "enum': []" not in str(one.parameters):
            assert not world.log[0].failed, world.log[0]
        for given in ("", "[]", '{"a": NaN}', {"zzz": 1}):
            assert isinstance(world.call(one.name, given), str)
        build_oracle(values, clause=None, tools=tools, focus=world.focus, model=model)
    assert model.describe()


def test_other_languages_have_their_own_people():
    world = MockWorld([tool("get_customer", customer_id="string")], spec=WorldSpec(locale="de_DE"))
    assert any(any(c in "äöüß" for c in str(r)) or "-" in str(r) for r in world.records["customer"].values())


def test_functions_are_executed_on_purpose_only():
    done = []

    def cancel(order_id: str) -> dict:
        done.append(order_id)
        if order_id == "bad":
            raise ValueError("no such order")
        return {"cancelled": order_id}

    world = live([cancel])(None, 0)
    assert json.loads(world.call("cancel", '{"order_id": "W1"}')) == {"cancelled": "W1"}
    assert "no such order" in world.call("cancel", {"order_id": "bad"})
    assert "no tool" in world.call("other", {})
    assert "not a JSON object" in world.call("cancel", "nope")
    assert [c.failed for c in world.log] == [False, True, True, True]
    MockWorld(parse_tools([cancel])).call("cancel", {"order_id": "W2"})
    assert done == ["W1", "bad"]


@pytest.mark.parametrize(
    ("values", "wanted", "ends"),
    [
        ({}, False, {"resolved"}),
        ({"tool_condition": "permission_denied"}, True, {"handed_off", "honest_failure"}),
        ({"world_state": "missing"}, None, {"refused", "handed_off", "honest_failure"}),
        ({"world_state": "already_acted_on"}, False, {"refused", "resolved"}),
    ],
)
def test_the_oracle_says_what_is_right(demo, values, wanted, ends):
    world = world_of(demo, tool="suspend_line", **values)
    oracle = build_oracle(
        {"tool": "suspend_line", **values}, clause=None, tools=demo[0], focus=world.focus, model=demo[2]
    )
    assert (oracle.handoff_wanted, set(oracle.ends)) == (wanted, ends)
    assert oracle.why.endswith(".")
    other = [r for r in oracle.must_not_call if r.other_than]
    assert other[0].other_than == {"line_id": world.focus.arguments["line_id"]}


@pytest.mark.parametrize("kind", ["must", "must_not", "may", "condition", "handoff"])
def test_a_clause_that_cannot_be_executed_widens_and_never_narrows(demo, kind):
    world = world_of(demo, tool="suspend_line")
    clause = Clause(id="c01", text="Do not suspend within 24 hours.", kind=kind)
    plain, told, unrelated = (
        build_oracle({"tool": "suspend_line"}, clause=c, tools=demo[0], focus=world.focus, applies=a, model=demo[2])
        for c, a in ((None, "unknown"), (clause, "unknown"), (clause, "no"))
    )
    assert set(plain.ends) <= set(told.ends)
    assert all(rule in plain.must_call for rule in told.must_call)
    assert told.open
    assert unrelated == plain


FEE_TOOLS = (
    tool("waive_late_fee", effect="write", fee_id="string", amount="number"),
    tool("return_product", effect="write", order_id="string", opened="boolean"),
    tool("get_fee", fee_id="string"),
    tool("transfer_to_person", effect="handoff", summary="string"),
)


@pytest.mark.parametrize(
    ("named", "facts", "kind", "text", "right"),
    [
        ("waive_late_fee", {"amount": "227.48"}, "may", "Late fees up to 15 euros may be waived; more is not yours to waive.", "no"),
        ("waive_late_fee", {"amount": "9.5"}, "may", "Late fees up to 15 euros may be waived.", "must"),
        ("waive_late_fee", {"amount": "9.5"}, "may", "Late fees up to 15 euros may be waived once in a year.", "either"),
        ("waive_late_fee", {"amount": "90"}, "must", "Waive late fees up to 15 euros, unless a manager agreed.", "either"),
        ("waive_late_fee", {"amount": "90"}, "must_not", "Never waive a late fee of more than 50 dollars.", "no"),
        ("waive_late_fee", {"amount": "40"}, "must_not", "Never waive a late fee of more than 50 dollars.", "must"),
        ("waive_late_fee", {"amount": "90"}, "may", "Late fees of up to $50 may be waived.", "no"),
        ("waive_late_fee", {"amount": "90"}, "handoff", "Waive a late fee of at most €15. Anything above needs a lead: transfer the customer.", "no"),
        ("waive_late_fee", {"amount": "40"}, "may", "Waive a late fee of at most €15.", "no"),
        ("waive_late_fee", {"amount": "9.5"}, "may", "Waive a late fee of at most €15.", "must"),
        ("waive_late_fee", {"amount": "40"}, "condition", "Waived late fees are worth no more than EUR 15.", "no"),
        ("waive_late_fee", {"amount": "40"}, "condition", "A waived late fee is at most 15€.", "no"),
        ("waive_late_fee", {"amount": "40"}, "must_not", "A waived late fee must not exceed £15.", "no"),
        ("waive_late_fee", {"amount": "9.5"}, "must_not", "A waived late fee must not exceed £15.", "must"),
        ("waive_late_fee", {"amount": "40"}, "condition", "The maximum amount of a waived late fee is $15.", "no"),
        ("waive_late_fee", {"amount": "40"}, "condition", "Waived late fees are capped at $15.", "no"),
        ("waive_late_fee", {"amount": "40"}, "must", "If the order is at most €15, waive the late fee.", "either"),
        ("waive_late_fee", {"amount": "40"}, "condition", "A waived late fee is at most 10% of the price.", "either"),
        ("waive_late_fee", {"amount": "40"}, "condition", "A late fee can be waived for at most 15 months.", "either"),
        ("waive_late_fee", {"amount": "40"}, "must_not", "Do not estimate a late fee.", "must"),
        ("waive_late_fee", {}, "must", "Tell the customer the late fee before you waive it.", "must"),
        ("return_product", {"opened": "yes"}, "must_not", "Opened medicines cannot be returned by law.", "either"),
        ("get_fee", {"amount": "40"}, "must_not", "Never waive a late fee of more than 5 dollars.", "must"),
    ],
)  # fmt: skip
def test_what_another_rule_limits_is_demanded_only_where_the_card_can_tell(named, facts, kind, text, right):
    model = infer_world(FEE_TOOLS)
    arguments = {"opened": True} if "opened" in facts else {}
    focus, rule = Focus(tool=named, arguments=arguments, facts=facts), Clause(id="c02", text=text, kind=kind)
    told = build_oracle({"tool": named}, clause=None, tools=FEE_TOOLS, focus=focus, model=model, clauses=(rule,))
    ends = {"must": {"resolved"}, "either": {"resolved", "refused", "handed_off"}, "no": {"refused", "handed_off"}}
    assert (bool(told.must_call), set(told.ends)) == (right == "must", ends[right])
    assert any(r.name == named and not r.other_than and r.at_most < 0 for r in told.must_not_call) is (right == "no")


STAY_TOOLS = (
    tool("change_booking", effect="write", booking_id="string", guest_confirmed="boolean"),
    tool("cancel_booking", effect="write", booking_id="string"),
    tool("update_seats", effect="write", booking_id="string", seats="integer"),
    tool("withdraw_claim", effect="write", claim_id="string"),
    tool("submit_claim", effect="write", amount="number"),
    tool("change_meal", effect="write", booking_id="string"),
    tool("get_booking", booking_id="string"),
    tool("hand_over", effect="handoff", summary="string"),
)


@pytest.mark.parametrize(
    ("named", "arguments", "kind", "text", "demanded"),
    [
        ("change_booking", {"guest_confirmed": True}, "must", "If the guest finds it dirty within 24 hours, clean it.", True),
        ("change_booking", {"guest_confirmed": True}, "must_not", "What a guest has confirmed is not returned.", False),
        ("withdraw_claim", {}, "must", "Claims must be submitted within 60 days.", True),
        ("withdraw_claim", {}, "must_not", "A claim cannot be withdrawn within 60 days.", False),
        ("update_seats", {}, "condition", "Seats: a reservation has at most five seats.", False),
        ("change_booking", {}, "may", "Change meal: Bookings with a meal can be changed within 24 hours.", True),
        ("change_booking", {}, "may", "Change requests: Bookings can be changed within 24 hours.", False),
        ("cancel_booking", {}, "must", "Cancel a booking only after the guest has confirmed.", True),
        ("cancel_booking", {}, "must", "Cancel a booking only after a manager has confirmed.", False),
    ],
)  # fmt: skip
def test_a_rule_of_something_else_leaves_the_deed_demanded(named, arguments, kind, text, demanded):
    model, rule = infer_world(STAY_TOOLS), Clause(id="c02", text=text, kind=kind)
    focus = Focus(tool=named, arguments=arguments)
    told = build_oracle({"tool": named}, clause=None, tools=STAY_TOOLS, focus=focus, model=model, clauses=(rule,))
    assert bool(told.must_call) is demanded


def test_what_is_brought_up_later_leaves_the_first_request_demanded():
    rule = Clause(id="c01", text="Hand over when somebody is hurt.", kind="handoff")
    focus = Focus(tool="cancel_booking", arguments={"booking_id": "B1"})
    first, second = (
        build_oracle({"tool": "cancel_booking"}, clause=rule, tools=STAY_TOOLS, focus=focus, later=late)
        for late in (False, True)
    )
    assert (first.must_call, [r.name for r in second.must_call]) == ((), ["cancel_booking"])
    assert {"resolved", "handed_off"} == set(first.ends) == set(second.ends)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (("If a system call fails, try it once more.", "If it fails again, tell the guest and open a callback."), None),
        (("If a system call fails, try it once more.", "If it fails again, transfer to the desk."), True),
        (("If a system call fails, try it once more.",), True),
        (("Make one tool call at a time, and do not answer meanwhile.",), True),
    ],
)
def test_a_policy_that_says_what_to_do_when_a_tool_fails_is_heard(rules, wanted):
    at = [sum(len(r) + 1 for r in rules[:i]) for i in range(len(rules))]
    clauses = tuple(
        Clause(id=f"c{i}", text=text, kind="must", span=(at[i], at[i] + len(text))) for i, text in enumerate(rules)
    )
    focus = Focus(tool="cancel_booking", arguments={"booking_id": "B1"}, reachable=False)
    values = {"tool": "cancel_booking", "tool_condition": "permission_denied"}
    told = build_oracle(values, clause=None, tools=STAY_TOOLS, focus=focus, clauses=clauses)
    assert (told.handoff_wanted, "honest_failure" in told.ends) == (wanted, True)
    assert ("hands over" in told.why) is (wanted is True)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("If the employee moves abroad, hand over to Global Mobility.", {"team": "global_mobility"}),
        ("Threats go to the Payroll Security team.", {"team": "payroll_security"}),
        ("Hand over to Payroll or to IT.", {}),
        ("Hand over payroll questions.", {}),
    ],
)
def test_a_team_that_a_rule_names_is_part_of_the_hand_over(text, arguments):
    teams = [7, "payroll", "payroll_security", None, "global_mobility", "it"]  # what is no text names no team
    schema = {"type": "object", "properties": {"team": {"enum": teams}}}
    tools = (*STAY_TOOLS[:-1], Tool(name="hand_over", description="", parameters=schema, effect="handoff"))
    rule, focus = Clause(id="c01", text=text, kind="handoff"), Focus(tool="cancel_booking", arguments={})
    told = build_oracle({"tool": "cancel_booking"}, clause=rule, tools=tools, focus=focus, applies="yes")
    assert told.must_call[0].arguments == arguments


ORDERS = (
    tool("get_order", "Read an order.", order_id="string"),
    tool("list_orders", "List the orders of a customer.", customer_id="string"),
    tool("hold_order", "Hold an order. No other orders are already held for the customer. Sets the order status to held.",
         "write", customer_id="string", order_id="string"),
    tool("release_order", "The order status must be held. Sets the order status to open.", "write", order_id="string"),
    tool("create_refund", "Create a refund.", "write", order_id="string", amount="number"),
)  # fmt: skip


@pytest.mark.parametrize("amount", [0, -3])
def test_a_new_record_of_no_amount_is_refused(amount):
    world = MockWorld(ORDERS, None, {"tool": "create_refund"}, 2)
    arguments = {**world.focus.arguments, "amount": amount}
    assert re.search("greater than zero|must be positive", world.call("create_refund", arguments))
    assert (world.log[-1].failed, world.log[-1].changes) == (True, ())


def test_a_payment_of_nothing_is_refused_as_none(demo):
    world = world_of(demo, tool="pay_bill")
    reply = world.call("pay_bill", {**world.focus.arguments, "amount": 0})
    assert re.search("greater than zero|must be positive", reply)
    assert world.log[-1].failed


def test_an_order_is_held_for_its_owner_alone_once_at_a_time_and_released_only_when_held():
    world = MockWorld(ORDERS, None, {"tool": "get_order"}, 2)
    orders = world.records["order"]
    (mine, other), theirs = _of_two_owners(orders)
    for key in orders:
        orders[key]["status"] = "shipped"
    owner, stranger = orders[mine]["customer_id"], orders[theirs]["customer_id"]
    for name, arguments, told in (
        ("release_order", {"order_id": mine}, r"\bshipped\b.*\bheld\b|\bheld\b.*\bshipped\b"),
        ("hold_order", {"customer_id": stranger, "order_id": mine}, "does not belong to|is not associated with"),
        ("hold_order", {"customer_id": owner, "order_id": mine}, ""),
        ("hold_order", {"customer_id": owner, "order_id": other}, "is already held|may be held at a time"),
        ("release_order", {"order_id": mine}, ""),
        ("hold_order", {"customer_id": owner, "order_id": other}, ""),
    ):
        reply = world.call(name, arguments)
        assert re.search(told, reply), reply
        assert world.log[-1].failed is bool(told)
    assert (orders[mine]["status"], orders[other]["status"], orders[theirs]["status"]) == ("open", "held", "shipped")


def _of_two_owners(orders):
    """Two orders of one customer, and one of another."""
    by_owner = {}
    for key, order in orders.items():
        by_owner.setdefault(order["customer_id"], []).append(key)
    mine = next(keys for keys in by_owner.values() if len(keys) > 1)
    return mine[:2], next(k for k, o in orders.items() if o["customer_id"] != orders[mine[0]]["customer_id"])


@pytest.mark.parametrize(
    ("named", "arguments", "never"),
    [
        ("send_payslip", {"employee_id": "E1", "month": "2026-03"}, False),
        ("send_voucher", {"employee_id": "E1", "amount": 40}, True),
        ("set_seats", {"booking_id": "B1", "seats": 2}, True),
    ],
)
def test_what_is_already_so_is_not_done_again_but_a_copy_is_sent(named, arguments, never):
    tools = (
        tool("send_payslip", effect="write", employee_id="string", month="string"),
        tool("send_voucher", effect="write", employee_id="string", amount="number"),
        tool("get_employee", employee_id="string"),
        tool("set_seats", effect="write", booking_id="string", seats="integer"),
        tool("get_booking", booking_id="string"),
    )
    values, focus = {"tool": named, "world_state": "already_acted_on"}, Focus(tool=named, arguments=arguments)
    told = build_oracle(values, clause=None, tools=tools, focus=focus)
    rules = [r for r in told.must_not_call if not r.other_than and not r.at_most]
    assert [r.name for r in rules] == [named] * never
    assert ("again on request" in told.why) is (named == "send_payslip")
    assert named != "set_seats" or rules[0].arguments == arguments


def test_a_rule_that_stops_everything_else_forbids_to_go_on():
    smell = Clause(id="c01", text="When a customer smells gas: tell them to leave.", span=(0, 47))
    stop = Clause(id="c02", text="Do not go on with anything else.", kind="must_not", span=(48, 80))
    focus, values = Focus(tool="waive_late_fee", arguments={}), {"tool": "waive_late_fee"}
    now, later, without = (
        build_oracle(values, clause=smell, tools=FEE_TOOLS, focus=focus, applies="yes", clauses=c, later=late)
        for c, late in (((smell, stop), False), ((smell, stop), True), ((smell,), False))
    )
    assert {(r.name, r.at_most) for r in now.must_not_call} == {(t.name, -1) for t in FEE_TOOLS[:3]}
    assert (now.must_call, now.handoff_wanted, len(now.ends)) == ((), None, 4)
    assert later.must_call
    assert without.must_call


@pytest.mark.corpus
@pytest.mark.parametrize("name", SETS[1:])
def test_a_sensible_player_satisfies_the_oracle(shared, name):
    tools, policy, model = open_set(name)
    condition_rule, state_rule = (rule.forbids for rule in model.rules())
    played, broken, failed = 0, [], []
    for number, one in enumerate(tools):
        for state in STATES:
            for condition in CONDITIONS:
                if (
                    condition_rule(one.name, condition)
                    or state_rule(one.name, state)
                    or (len(tools) > 2 and (number + len(state) + len(condition)) % 2)
                ):
                    continue
                values = {"tool": one.name, "world_state": state, "tool_condition": condition}
                world = MockWorld(tools, policy, values, number, model=model)
                oracle = build_oracle(values, clause=None, tools=tools, focus=world.focus, model=model)
                played += 1
                if wrong := violations(oracle, world, play(world, oracle, tools)):
                    broken.append((values, wrong, world.log[-1].reply[:80]))
                if state == "exists" and condition == "success" and world.log[0].failed:
                    failed.append((one.name, world.log[0].reply[:120]))
    assert played
    assert len(broken) <= (0.02 if name.startswith("tau2") else 0.05) * played, broken
    assert not failed


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    ["tau2/retail", "tau2/airline", "tau2/telecom", "corpus/05-adk-home-garden", "corpus/25-openapi-checkout"],
)
def test_a_world_that_is_printed_and_given_back_is_the_same_world(shared, tmp_path, name):
    tools, policy, model = open_set(name)
    path = tmp_path / "world.yaml"
    path.write_text(model.describe(), encoding="utf-8")
    again = infer_world(tools, policy, WorldSpec.from_yaml(path))
    told = [m.describe().split("guessed:")[0] for m in (model, again)]
    assert [line.split("  #")[0] for line in told[0].splitlines()] == [
        line.split("  #")[0] for line in told[1].splitlines()
    ]
    for one in tools:
        assert (
            MockWorld(tools, policy, {"tool": one.name}, 3, model=model).state
            == MockWorld(tools, policy, {"tool": one.name}, 3, model=again).state
        )


def test_replies_are_well_formed(demo):
    for name in ("demo", *(n for n in ("tau2/retail", "corpus/09-bfcl-ticket-api-dict") if (SHARED / n).is_dir())):
        count, wrong = ill_formed(name, 1)
        assert count > 50
        assert wrong == []


SHOP = """
There are 3 types of products.

Each product has:
- product id
- name
- list of variants

Each variant has:
- item id
- options
- price

Each customer has:
- customer ID
- email
- created date

Each bill contains:
- bill ID
- issue date
- due date
- total amount
- line items (charges, fees, credits)
- status

There are three bill status types: **Issued**, **Paid** and **Overdue**.

## Flight
Seats and prices are listed for each cabin class.

There are two cabin classes: **economy**, **business**.
"""
SHOP_TOOLS = [
    tool("get_product", product_id="string"), tool("get_item", item_id="string"), tool("list_products", "List the name and id of all products."),
    tool("get_customer", customer_id="string"), tool("get_bill", bill_id="string"), tool("pay_bill", "Pay a bill.", "write", bill_id="string"),
    tool("search_flights", "Search flights.", origin="string", destination="string", date="string"), tool("list_airports"),
    tool("get_flight", flight_number={"type": "string", "description": "Such as 'AB123'."}),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_records_read_as_those_of_a_real_shop_do(seed):
    world = MockWorld(SHOP_TOOLS, SHOP, {"tool": "get_bill"}, seed)
    for key in world.records["product"]:
        rows = json.loads(world.call("get_product", {"product_id": key}))["variants"]
        assert max(r["price"] for r in rows) <= 1.5 * min(r["price"] for r in rows)
        assert len({r["options"] for r in rows}) == len(rows)
    for bill in world.records["bill"].values():
        assert bill["issue_date"] < bill["due_date"]
        assert (bill["due_date"] < f"{world.model.now:%Y-%m-%d}") == (bill["status"] != "Issued")
        parts = bill["line_items"]
        assert bill["total_amount"] == round(parts["charges"] + parts["fees"] - parts["credits"], 2)
        assert all(n["date"] <= bill["updated_at"] for n in bill["notes"])
    assert all(c["created_date"] < "2026" for c in world.records["customer"].values())
    assert set(json.loads(world.call("list_products", {}))[0]) == {"product_id", "name"}
    assert {"iata": "SFO", "city": "San Francisco"} in json.loads(world.call("list_airports", {}))
    flight = json.loads(world.call("search_flights", {"origin": "SFO", "destination": "BOS", "date": "2026-04-01"}))[0]
    assert re.fullmatch(r"[A-Z]{2}\d{3}", flight["flight_number"])
    assert flight["prices"]["economy"] <= flight["prices"]["business"]


def test_notes_mark_no_record_as_the_one_that_the_situation_is_about(demo):
    texts = {
        n["text"][:4]
        for seed in range(30)
        for kind in world_of(demo, seed).records.values()
        for r in kind.values()
        for n in r.get("notes", ())
    }
    told = world_of(demo, tool="get_bill", history="prior_failure")
    assert {n["text"][:4] for n in told.records["bill"][told.focus.id]["notes"]} <= texts


def test_a_look_at_one_s_own_device_shows_what_its_description_lists():
    own = [
        tool("check_network", "Shows airplane mode status, signal strength, and whether mobile data is enabled."),
        tool("toggle_airplane_mode", "Toggles airplane mode.", "write"),
        tool("check_app_status", "Checks an app.", app_name="string"),
    ]
    world = MockWorld([tool("get_line", line_id="string")], customer_tools=own)
    assert set(json.loads(world.customer_call("check_network", {}))) == {
        "airplane_mode",
        "signal_strength",
        "mobile_data",
    }
    flipped = json.loads(world.customer_call("toggle_airplane_mode", {}))
    assert json.loads(world.customer_call("check_network", {}))["airplane_mode"] == flipped["airplane_mode"]
    assert json.loads(world.customer_call("check_app_status", {"app_name": "maps"}))["app_name"] == "maps"


def test_an_example_is_filled_with_the_call_and_says_nothing_of_mock_or_of_old_dates():
    reply = {
        "status": "ok",
        "code": "MOCK_CODE",
        "valid_until": "2021-01-01",
        "expiration_date": "2021-05-05",
        "sent_to": "+49123",
    }
    spec = WorldSpec(examples={"make_code": [({"phone": "+49123", "expiration_days": 30}, reply)]})
    world = MockWorld(
        [tool("make_code", "Make a code.", "write", phone="string", expiration_days="integer")], spec=spec
    )
    found = json.loads(world.call("make_code", {"phone": "555-1", "expiration_days": 10}))
    assert (found["sent_to"], found["expiration_date"], found["status"]) == ("555-1", "2026-03-12", "ok")
    assert "MOCK" not in found["code"]
    assert found["valid_until"] > "2026"


def test_a_spec_overrides_kinds_and_deeds():
    tools = [
        tool("fetch", "Get it.", order_id="string"),
        tool("finish", "Do it.", "write", order_id="string", by="string"),
    ]
    spec = WorldSpec(
        entities={"order": {"key": "order_id", "fields": {"size": "count"}, "status": ["open", "done"], "count": 3}},
        tools={
            "finish": {
                "action": "change",
                "entity": "order",
                "pre": ["open"],
                "post": "done",
                "sets": {"by": "finished_by"},
            }
        },
    )
    world = MockWorld(tools, None, {"tool": "finish"}, spec=spec)
    assert len(world.records["order"]) == 3
    world.call("finish", {**world.focus.arguments, "by": "me"})
    found = json.loads(world.call("fetch", {"order_id": world.focus.arguments["order_id"]}))
    assert (found["status"], found["finished_by"], type(found["size"])) == ("done", "me", int)
    world.call("finish", world.focus.arguments)
    assert world.log[-1].failed


def test_a_policy_without_records_still_makes_a_world():
    world = MockWorld([tool("get_order", order_id="string")], Policy(text="Be kind.", clauses=()))
    assert json.loads(world.call("get_order", world.focus.arguments))["order_id"] == world.focus.id


@pytest.mark.corpus
def test_the_oracle_agrees_with_what_was_written_by_hand(shared: Path) -> None:
    """At least 36 of 40 situations; truth.yaml was written before the oracle was run on any of them."""
    agree = [not wrong for *_, wrong in compare_truth()]
    assert (len(agree), sum(agree) >= 36) == (40, True)


def test_an_argument_without_a_name_is_one_like_any_other() -> None:
    schema = {"type": "object", "properties": {"email": {"type": "string"}, "": {"x": "y"}}, "required": ["email", ""]}
    world = MockWorld([{"name": "find_user", "description": "Find a user.", "parameters": schema}])
    assert set(world.focus.arguments) == {"email", ""}
    assert world.call("find_user", world.focus.arguments)


def test_a_kind_that_is_said_to_belong_to_nothing_known_belongs_to_nobody() -> None:
    given = [{"name": "get_line", "parameters": {"properties": {"line_id": {"type": "string"}}}}]
    model = infer_world(parse_tools(given), None, WorldSpec(entities={"line": {"parent": "castle"}}))
    assert model.kinds["line"].parent == ""
    assert MockWorld(parse_tools(given), None, None, 0, model=model).records["line"]


@pytest.mark.parametrize(
    ("schema", "role"),
    [
        ({"type": "string", "format": "date-time"}, "moment"),
        ({"type": "string", "description": "ISO date and time"}, "moment"),
        ({"type": "string", "description": "The new date of the visit"}, "date"),
        ({"type": "string", "format": "email"}, "email"),
        ({"type": "string", "description": "How the visit begins"}, "word"),
    ],
)
def test_what_a_schema_states_counts_where_a_name_says_nothing(schema: dict[str, str], role: str) -> None:
    assert describe_field("start", schema, "").role == role


@pytest.mark.parametrize("name", ["user.email", "a.b", "https://a.b/c?d="])
@pytest.mark.parametrize("verb", ["create", "update", "find"])
def test_a_dot_in_an_argument_s_own_name_names_no_part_of_another(name: str, verb: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    model = infer_world(parse_tools([{"name": f"{verb}_ticket", "parameters": schema}]), parse_policy("Be kind."), None)
    assert f"{verb}_ticket" in model.tools


def inferred(*made):
    tools = parse_tools([t.to_openai() for t in made], effects={t.name: t.effect for t in made})
    return tools, infer_world(tools)


@pytest.mark.parametrize(
    ("noun", "key", "written"),
    [
        ("parcel", "tracking_ref", "depot"),
        ("policy", "policyNo", "start_date"),
        ("appointment", "case_locator", "slot"),
        ("booking", "pnr", "seat_wish"),
        ("booking", "confirmation_code", "check_in"),
        ("contract", "contractReference", "tariff"),
    ],
)
def test_the_key_of_a_kind_is_the_id_argument_that_its_own_tools_share(noun, key, written) -> None:
    tools, model = inferred(
        tool(f"get_{noun}", **{key: "string"}),
        tool(f"cancel_{noun}", effect="write", **{key: "string"}, reason="string"),
        tool(f"change_{noun}", effect="write", **{key: "string", written: "string"}),
        tool("issue_voucher", effect="write", **{key: "string"}, amount="number"),
    )
    actions = {d.tool: (d.action, d.kind, d.key) for d in model.deeds.values()}
    assert model.kinds[noun].key == key
    assert actions[f"get_{noun}"] == ("get", noun, key)
    assert {actions[f"{verb}_{noun}"] for verb in ("cancel", "change")} == {("change", noun, key)}
    world = MockWorld(tools, None, {"tool": "issue_voucher"}, 3, model=model)
    assert world.focus.arguments[key] in world.records[noun]
    assert model.notes() == ()


def test_a_tool_whose_record_no_argument_names_is_told_of() -> None:
    _, model = inferred(tool("get_ride", title="string"), tool("cancel_ride", effect="write", reason="string"))
    assert [note.split(":")[0] for note in model.notes()] == ["cancel_ride"]
    assert "none of its arguments names the record" in model.describe()


HOTEL = (
    tool("get_booking", booking_number="string"),
    tool("get_guest_profile", guest_id="string"),
    tool("cancel_booking", effect="write", booking_number="string", reason="string"),
    tool(
        "change_booking_dates", effect="write", booking_number="string",
        check_in={"type": "string", "format": "date"}, check_out={"type": "string", "format": "date"},
    ),
    tool(
        "add_late_checkout", effect="write", booking_number="string",
        until={"type": "string", "description": "HH:MM, at latest 14:00"}, nights={"type": "integer", "minimum": 2, "maximum": 3},
    ),
    tool("issue_voucher", effect="write", guest_id="string", booking_number="string", amount={"type": "number", "maximum": 50}),
)  # fmt: skip


@pytest.mark.parametrize("name", ["issue_voucher", "add_late_checkout", "cancel_booking"])
def test_the_record_of_a_card_belongs_to_its_customer(name) -> None:
    tools, model = inferred(*HOTEL)
    for seed in range(12):
        world = MockWorld(tools, None, {"tool": name}, seed, model=model)
        booking = world.records["booking"][world.focus.arguments["booking_number"]]
        assert booking["guest_id"] == world.focus.facts["guest id"]


@pytest.mark.parametrize("name", ["cancel_booking", "change_booking_dates"])
def test_of_a_double_the_customer_says_what_tells_it_apart_or_its_key(name) -> None:
    tools, model = inferred(*HOTEL)
    for seed in range(12):
        focus = (world := MockWorld(tools, None, {"tool": name, "world_state": "duplicate"}, seed, model=model)).focus
        known, mine = set(focus.facts.values()), world.records["booking"].items()
        assert focus.id in [k for k, b in mine if k in known or {b["check_in"], b["check_out"]} <= known]
        assert len([k for k, b in mine if k in known or {b["check_in"], b["check_out"]} <= known]) == 1


def test_the_oracle_counts_a_write_that_what_it_belongs_to_shows() -> None:
    tools, model = inferred(*HOTEL)
    values = {"tool": "add_late_checkout", "tool_condition": "malformed", "world_state": "exists"}
    worlds = (MockWorld(tools, None, values, seed, model=model) for seed in range(20))
    world = next(w for w in worlds if not w.focus.reachable)
    world.call("add_late_checkout", world.focus.arguments)
    assert world.log[0].failed
    assert world.log[0].changes
    told = build_oracle(values, clause=None, tools=tools, focus=world.focus, model=model)
    assert "resolved" in told.ends
    assert "cannot work here" not in told.why


def test_invented_values_keep_the_bounds_of_their_schema() -> None:
    tools, model = inferred(*HOTEL)
    for seed in range(12):
        late = MockWorld(tools, None, {"tool": "add_late_checkout"}, seed, model=model).focus.arguments
        assert re.fullmatch(r"(0\d|1[0-3]):\d\d", late["until"])
        assert late["nights"] in (2, 3)
        assert MockWorld(tools, None, {"tool": "issue_voucher"}, seed, model=model).focus.arguments["amount"] <= 50


def test_where_no_person_can_be_reached_a_clause_asks_for_no_more_than_a_try(demo):
    values = {"tool": "transfer_to_person", "tool_condition": "permission_denied"}
    hand = values["tool"]
    focus = replace(MockWorld(demo[0], None, values, 1).focus, reachable=False)
    clause = Clause(id="c1", text="Hand over when the customer names a lawyer.", kind="handoff")
    oracle = build_oracle(values, clause=clause, tools=demo[0], focus=focus, applies="yes", model=demo[2])
    assert ([r.name for r in oracle.must_call], oracle.ends) == ([hand], ("honest_failure",))


@pytest.mark.parametrize(("needed", "ends"), [((), True), (("tenant_id",), False)])
def test_what_can_be_made_for_nobody_may_be_made_for_one_who_is_missing(needed, ends):
    given = tool("open_note", "Open a note.", "write", text="string", tenant_id="string")
    given = replace(given, parameters={**given.parameters, "required": ["text", *needed]})
    tools = [tool("get_tenant", tenant_id="string"), given]
    values = {"tool": "open_note", "world_state": "missing"}
    oracle = build_oracle(values, clause=None, tools=tools, focus=MockWorld(tools, None, values, 2).focus)
    assert ("resolved" in oracle.ends, oracle.must_not_claim) == (ends, () if ends else ("open_note",))


@pytest.mark.parametrize(
    ("amount", "text", "no"),
    [
        ("186.05", "Offer a €15 voucher for a complaint, at most one per order.", True),
        ("186.05", "Issue a 15 euro voucher.", True),
        ("12.5", "Offer a €15 voucher for a complaint, at most one per order.", False),
        ("186.05", "If the customer has a €15 voucher already, issue another voucher.", False),
        ("186.05", "Issue a 24 hours voucher.", False),
    ],
)
def test_a_thing_that_a_rule_sizes_is_not_made_larger(amount: str, text: str, no: bool) -> None:
    tools = (
        tool("issue_voucher", effect="write", order_id="string", amount="number"),
        tool("get_order", order_id="string"),
    )
    focus, rule = (
        Focus(tool="issue_voucher", arguments={}, facts={"amount": amount}),
        Clause(id="c02", text=text, kind="must"),
    )
    world = infer_world(tools)
    told = build_oracle({"tool": "issue_voucher"}, clause=None, tools=tools, focus=focus, model=world, clauses=(rule,))
    assert any(r.name == "issue_voucher" and r.at_most < 1 for r in told.must_not_call) is no
