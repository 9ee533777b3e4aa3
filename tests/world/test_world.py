"""A world made of nothing but tools and a policy: reads, writes, faults, states, and the oracle above them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from world_sets import load_set, play, tool, violations

from whilesim.core.errors import InputError
from whilesim.situations.axes import Situation
from whilesim.situations.policy import Clause, Policy, parse_policy
from whilesim.situations.tools import parse_tools
from whilesim.world.entities import infer_world
from whilesim.world.live import live
from whilesim.world.mock import MockWorld
from whilesim.world.oracle import build_oracle
from whilesim.world.spec import WorldSpec

CONDITIONS = ("success", "timeout", "malformed", "stale", "permission_denied")
STATES = ("exists", "missing", "already_acted_on", "duplicate", "partially_completed")
SETS = ["tau2/retail", "tau2/airline", "tau2/telecom", "tau2/mock"] + [
    f"corpus/{name}"
    for name in (
        "01-openai-cs-agents-demo-airline", "03-swarm-help-center-wrapped", "05-adk-home-garden", "07-german-voice-agent-mcp",
        "09-bfcl-ticket-api-dict", "11-bfcl-memory-duplicate-names", "21-acme-insurance-eva", "25-openapi-checkout",
        "35-bare-openai-waiter", "37-toolbench-optional-example-value",
    )
]  # fmt: skip


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


def test_a_world_is_the_same_bytes_in_every_process():
    code = (
        "import json, sys; sys.path.insert(0, 'tests'); from pathlib import Path; import whilesim; from world_sets import load_set;"
        "from whilesim.world.mock import MockWorld; t, p = load_set(Path(whilesim.__file__).parent / 'demo');"
        "w = MockWorld(t, p, {'tool': 'change_plan', 'world_state': 'duplicate', 'tool_condition': 'timeout'}, 5);"
        "print(json.dumps(w.state), w.focus, w.call('change_plan', w.focus.arguments), w.call('list_plans', {}), w.model.describe())"
    )
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        for seed in ("11", "4242")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) > 2000


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


CYCLE: dict = {"type": "object", "properties": {"name": {"type": "string"}}}
CYCLE["properties"]["inner"] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ids": {"type": "array", "items": {}}},
}


@pytest.mark.parametrize(
    "tools",
    [
        [tool("ping"), tool("cancel_it", effect="write"), tool("toggle", effect="write")],
        [tool("update_tree", "Update a tree.", "write", tree=CYCLE), tool("get_tree", tree_name="string")],
        [tool(f"{verb}_thing_{n}", effect=effect, **{f"thing_{n}_id": "string"}) for n in range(75) for verb, effect in (("get", "read"), ("cancel", "write"))],
        [tool("obtener_pedido", "Obtiene un pedido.", pedido_id="string"), tool("cancelar_pedido", "Cancela.", "write", pedido_id="string")],
        [tool("set_level", "Set it.", "write", level={"type": "string", "enum": ["only"]}), tool("read_level", level={"enum": [None]})],
        [tool("x", effect="write", a={}, b={"type": ["string", "null"]}, c={"anyOf": [{"type": "integer"}, {"type": "null"}]})],
        [tool("send", effect="write", to="string"), tool("get", id="string"), tool("list"), tool("delete_all", effect="write")],
    ],
)  # fmt: skip
def test_odd_tools_make_a_world_and_never_a_crash(tools):
    model = infer_world(tools)
    for one in tools[:6]:
        for state in STATES:
            for condition in CONDITIONS:
                values = {
                    "tool": one.name,
                    "world_state": state,
                    "tool_condition": condition,
                    "history": "prior_failure",
                }
                world = MockWorld(tools, None, values, 1, model=model)
                world.call(one.name, world.focus.arguments)
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


@pytest.mark.corpus
@pytest.mark.parametrize("name", SETS)
def test_a_sensible_player_satisfies_the_oracle(shared, name):
    tools, policy = load_set(shared / name)
    model = infer_world(tools, policy)
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


def test_a_policy_without_records_still_makes_a_world():
    world = MockWorld([tool("get_order", order_id="string")], Policy(text="Be kind.", clauses=()))
    assert json.loads(world.call("get_order", world.focus.arguments))["order_id"] == world.focus.id
