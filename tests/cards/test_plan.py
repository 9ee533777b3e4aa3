"""A plan: what is decided before anyone speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whilesim as ws
from whilesim.chat.messages import Message
from whilesim.chat.models import Reply
from whilesim.showcase import demo_policy, demo_tools

POLICY, TOOLS = demo_policy(), demo_tools()
GOLDEN = Path(__file__).parent.parent / "golden"


def plan(**options: Any) -> ws.Plan:
    return fresh(**options) if options else plain()


def fresh(**options: Any) -> ws.Plan:
    return ws.plan(**{"tools": TOOLS, "system_prompt": POLICY, "situations": 20, **options})


plain = cache(fresh)  # a plan is frozen: one serves all tests that want nothing of their own


def test_cards_are_in_covering_order_and_hold_its_rows() -> None:
    made = plan()
    assert [dict(c.situation.values) for c in made.cards] == [dict(r) for r in made.covering.rows]
    assert [c.id for c in made.cards] == sorted(c.id for c in made.cards)


def test_the_plain_product_and_the_axes_are_told() -> None:
    made = plan()
    assert made.size == 260_000
    assert list(made.axes) == ["clause", "tool", "tool_condition", "world_state", "stance", "history"]


def test_coverage_counts_what_the_cards_hold() -> None:
    coverage = plan().coverage
    assert coverage.covered + len(coverage.missing()) == coverage.feasible
    assert coverage.covered <= coverage.reachable < coverage.feasible
    assert 0 < coverage.fraction < 1


def test_two_cards_that_differ_only_in_the_clause_have_different_goals() -> None:
    texts = [c.text for c in plan().policy.clauses]
    goals = set()
    for number in range(len(texts)):
        only = plan(
            axes={
                "clause": [f"c{number + 1:02d}", f"c{(number + 1) % len(texts) + 1:02d}"],
                "tool": ["get_bill", "get_line"],
            },
            situations=1,
        )
        goals.add((only.cards[0].situation.values["clause"], only.cards[0].goal))
    assert len({goal for _, goal in goals}) == len({clause for clause, _ in goals})


@pytest.mark.parametrize(
    ("rule", "other"),
    [("within 50 dollars", "within 70 dollars"), ("Never promise a date on which", "Never say of a moose that")],
)
def test_changing_one_clause_changes_only_its_cards(rule: str, other: str) -> None:
    before, after = plan(), plan(system_prompt=POLICY.replace(rule, other))
    (clause,) = (o.id for o, n in zip(before.policy.clauses, after.policy.clauses, strict=True) if o.text != n.text)
    others = [(o, n) for o, n in zip(before.cards, after.cards, strict=True) if o.situation.values["clause"] != clause]
    assert all(old == new for old, new in others)
    assert 0 < len(others) < len(before.cards)
    assert before.cards != after.cards


def test_axes_can_be_added_replaced_and_removed() -> None:
    made = plan(axes={"channel": ["chat", "email"], "stance": None, "history": ["fresh", "repeat_visit"]})
    assert made.axes["channel"] == ("chat", "email")
    assert "stance" not in made.axes
    assert made.axes["history"] == ("fresh", "repeat_visit")


def test_forbidden_combinations_are_not_planned() -> None:
    rule = ws.forbid("tool", "stance", lambda tool, stance: tool == "pay_bill" and stance == "upset")
    made = plan(forbid=[rule], situations=None, candidates=1)
    values = [c.situation.values for c in made.cards]
    assert not [v for v in values if v["tool"] == "pay_bill" and v["stance"] == "upset"]
    assert made.coverage.fraction == 1.0


def test_facts_agree_with_the_worlds_records() -> None:
    made = plan()
    for card in made.cards:
        if card.situation.values["world_state"] != "exists":
            continue
        state = json.dumps(made.world_for(card).state)
        ids = [v for k, v in card.facts.items() if k.endswith(" id")]
        assert all(v in state for v in ids), card.id


def test_twins_differ_in_one_value_and_share_every_word() -> None:
    made = plan(twins=1.0)
    twins = [c for c in made.cards if c.twin_of]
    originals = {c.id: c for c in made.cards}
    assert made.twins_wanted == 20
    assert twins
    for twin in twins:
        first = originals[str(twin.twin_of)]
        assert (twin.goal, twin.opening, twin.facts, twin.persona) == (
            first.goal,
            first.opening,
            first.facts,
            first.persona,
        )
        flipped = [k for k, v in twin.situation.values.items() if first.situation.values[k] != v]
        assert flipped in (["world_state"], ["tool_condition"])
        assert made.oracles[twin.id].open == made.oracles[first.id].open
        assert made.oracles[twin.id] != made.oracles[first.id]
    assert "asked for" in str(made)


def test_a_plan_prints_its_numbers_and_ten_cards() -> None:
    text = str(plan())
    assert "260,000" in text
    assert "s0010" in text
    assert "s0011" not in text
    assert "<table>" in plan()._repr_html_()


def test_what_a_plan_says_of_its_covering() -> None:
    lines = str(plan(situations=150, embedder="hashed", candidates=1)).splitlines()
    assert "\n".join(lines[:5]) + "\n" == (GOLDEN / "plan_demo.txt").read_text(encoding="utf-8")
    assert [line.split()[0] for line in lines[5:8]] == ["ends", "diversity", "estimate"]
    few = {"clause": ["c01", "c02"], "tool": ["get_bill", "get_line"], "stance": None}
    complete = str(plan(situations=None, candidates=1, axes=few))
    assert "25 situations at least for every pair; these 25 are proven optimal" in complete


def test_a_value_that_no_situation_can_have_is_told() -> None:
    made = plan(situations=3, candidates=1, forbid=[ws.forbid("stance", lambda stance: stance == "upset")])
    assert "no situation has stance 'upset': the rules forbid it." in made.notes
    assert "no situation has stance 'upset'" in str(made)


def test_with_triples_the_pairs_that_can_happen_are_still_counted() -> None:
    axes = {"stance": None, "history": None, "clause": ["c01", "c02"], "tool": ["get_bill", "pay_bill", "list_plans"]}
    pairs, triples = (plan(axes=axes, strength=n, candidates=1, situations=5) for n in (2, 3))
    assert pairs.coverage.feasible == triples.coverage.feasible == pairs.covering.feasible


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_a_balance_turns_situations_toward_its_share_and_costs_no_pair(share: float) -> None:
    plain = plan(situations=20, candidates=1)
    leaning = plan(situations=20, candidates=1, balance={"handoff_wanted": share})
    assert leaning.coverage.covered >= plain.coverage.covered
    near, far = (sum(o.handoff_wanted is True for o in p.oracles.values()) / 20 for p in (leaning, plain))
    assert abs(near - share) < abs(far - share)
    assert f"{near:.1%}, wished {share:.1%}" in str(leaning)
    assert "balance" not in str(plain)


def test_a_balance_in_numpys_numbers_is_the_same_plan(tmp_path: Path) -> None:
    told, same = (plan(situations=10, candidates=1, balance={"handoff_wanted": n}) for n in (np.float32(0.5), 0.5))
    assert told.balance == {"handoff_wanted": 0.5}
    for name, one in (("told", told), ("same", same)):
        one.save(tmp_path / name)
    assert (tmp_path / "told").read_bytes() == (tmp_path / "same").read_bytes()


def test_a_balance_out_of_reach_says_how_many_situations_would_do() -> None:
    told = str(plan(situations=30, candidates=1, balance={"handoff_wanted": 0.9}))
    assert "situations would reach it" in told


def test_the_estimate_is_unknown_without_a_price() -> None:
    made = plan()
    assert made.estimate("openai:x").usd is None
    assert made.estimate(ws.Model("x", price=(1.0, 2.0))).usd > 0  # type: ignore[operator]
    assert made.estimate(ws.Model("openai:gpt-4.1-mini")).usd == made.estimate("openai:gpt-4.1-mini").usd > 0  # type: ignore[operator]
    assert made.estimate().calls == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"situations": -1}, "situations=-1"),
        ({"candidates": 0}, "candidates=0"),
        ({"twins": 2}, "twins=2"),
        ({"twins": "a"}, "twins='a' is no share"),
        ({"candidates": 2.5}, r"candidates=2\.5"),
        ({"candidates": "2"}, "candidates='2'"),
        ({"situations": True}, "situations=True leaves nothing"),
        ({"seed": True}, "seed=True decides nothing"),
        ({"seed": np.bool_(True)}, "seed=.*True.* decides nothing"),
        ({"balance": {"handoffs": 0.3}}, "Type balance=.'handoff_wanted': 0.3"),
        ({"balance": {"handoff_wanted": 1.3}}, "a share from 0 to 1"),
        ({"balance": {"handoff_wanted": "much"}}, "a share from 0 to 1"),
        ({"balance": {}}, "cannot be followed"),
        ({"forbid": [lambda stance: True]}, "which is no rule. Type forbid="),
        ({"forbid": [ws.forbid("mood", bool)]}, "names 'mood', which is no axis"),
        ({"forbid": [ws.forbid("stance", lambda s: 1 / 0)]}, "failed on"),
        ({"system_prompt": None}, "needs both"),
        ({"stenght": 3}, "Did you mean 'strength'"),
        ({"strength": 4}, "strength=4 is no strength"),
        ({"axes": [("channel", ["chat"])]}, "axes"),
    ],
)
def test_bad_options_say_what_to_type(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ws.InputError, match=words):
        plan(**options)


def test_a_number_of_numpys_is_a_number() -> None:
    numpys = plan(situations=np.int64(6), seed=np.int64(3), candidates=np.int32(2), twins=np.float32(0.5))
    assert numpys.to_json() == plan(situations=6, seed=3, candidates=2, twins=0.5).to_json()


def test_a_shard_outside_the_plan_is_refused() -> None:
    with pytest.raises(ws.InputError, match="from 0 to 2"):
        plan().shard(3, 3)


def test_a_file_that_is_no_plan_is_refused(tmp_path: Any) -> None:
    (tmp_path / "p.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ws.InputError, match="is no plan"):
        ws.load_plan(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        ({"balance": ["handoff_wanted", 0.3]}, "balance: Input should be a valid dictionary"),
        ({"notes": 3}, "notes: Input should be a valid tuple"),
        ({"axes": {"stance": [["upset"]]}}, "axes.stance.0: Input should be a valid string"),
        ({"axes": {"stance": ["upset"]}}, "a row has the axes"),
        ({"oracles": {}}, "the card 's0001' has no oracle"),
        ({"version": 2}, "version: Input should be 1"),
        ({"seed": "7"}, "seed: Input should be a valid integer"),
        ({"seed": True}, "seed: Input should be a valid integer"),
        ({"system_prompt": "Be kind."}, "its system_prompt is another text"),
        ({"world": {"locale": 3}}, "world.locale"),
        ({"world": {"localee": "de_DE"}}, "world.localee: Unexpected keyword"),
    ],
)
def test_a_plan_with_a_wrong_field_is_refused_by_its_name(tmp_path: Any, spoilt: dict[str, Any], words: str) -> None:
    (tmp_path / "p.json").write_text(json.dumps({**plan().to_json(), **spoilt}), encoding="utf-8")
    with pytest.raises(ws.InputError, match=f"is no plan .{words}"):
        ws.load_plan(tmp_path / "p.json")


def test_a_plan_with_one_card_twice_is_refused(tmp_path: Any) -> None:
    found = plan().to_json()
    found["cards"].append(found["cards"][3])  # its rows would have one id, and half of them never be played
    (tmp_path / "p.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ws.InputError, match="the card 's0004' stands there twice"):
        ws.load_plan(tmp_path / "p.json")


def test_a_plan_whose_pairs_name_an_unknown_value_is_refused(tmp_path: Any) -> None:
    found = plan().to_json()
    found["covering"]["infeasible"] = [[["tool", "nobody"], ["stance", "upset"]]]
    (tmp_path / "p.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ws.InputError, match="the axis 'tool' has no value 'nobody'"):
        ws.load_plan(tmp_path / "p.json")


class Writer:
    """A writer model that answers with the same words for all candidates."""

    def __init__(self, opening: str) -> None:
        self.opening = opening
        self.prompts: list[str] = []

    async def reply(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **_: Any) -> Reply:
        prompt = messages[0].content or ""
        self.prompts.append(prompt)
        second = "And one more thing, please." if '"second": "..."' in prompt else ""
        cards = [{"opening": f"{self.opening} {n}", "second": second} for n in range(4)]
        return Reply(message=Message(role="assistant", content=json.dumps({"cards": cards})))


def test_a_writer_gets_its_own_clause_and_no_other() -> None:
    writer = Writer("Hello there")
    made = plan(writer=writer)
    assert len(writer.prompts) == 20
    for card, prompt in zip(made.cards, writer.prompts, strict=True):
        own = made.clause(card)
        assert own is not None
        assert own.text in prompt
        assert not [c.id for c in made.policy.clauses if c.id != own.id and c.text in prompt]
        assert card.opening.startswith("Hello there")


@pytest.mark.parametrize(
    "opening", ["my order ZZ99887 is late", "please run get_bill", "Identify the customer by phone number, customer ID"]
)
def test_a_writer_that_invents_names_tools_or_quotes_is_not_taken(opening: str) -> None:
    made = plan(writer=Writer(opening), situations=5)
    assert not [c for c in made.cards if opening in c.opening]
    assert "keep the template's words" in " ".join(made.notes)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("Transfer to a human if and only if the tools cannot do it.", None),
        ("Do not transfer to a human for anything else.", None),
        ("Transfer to a human when the customer asks for one.", True),
        ("Only transfer to a human when the customer asks for one.", True),
    ],
)
def test_a_wish_for_a_person_is_met_where_the_policy_keeps_people_for_nothing_else(
    rule: str, wanted: bool | None
) -> None:
    tools = [{"name": "get_order", "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}]
    tools += [{"name": "transfer_to_human", "parameters": {"type": "object", "properties": {}}}]
    plan = ws.plan(tools=tools, system_prompt=f"- Be polite.\n- {rule}\n", situations=20, seed=1)
    mine = [c for c in plan.cards if c.situation.values["tool"] == "transfer_to_human"]
    (manner,) = (c.id for c in plan.policy.clauses if "polite" in c.text)
    polite = [c for c in mine if c.situation.values["clause"] == manner]
    oracles = [plan.oracles[c.id] for c in polite if plan.oracles[c.id].ends != ("honest_failure",)]
    assert oracles
    assert {o.handoff_wanted for o in oracles} == {wanted}
