"""Pairs: one prompt, one right and one wrong turn, and a reason."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whilesim.chat.messages import Message
from whilesim.grading.verdicts import Verdict
from whilesim.keeping.pairs import build_pairs as build
from whilesim.world.oracle import CallRule, Oracle

GOOD = "I cannot do that: the policy does not allow it."
BAD = "Done! Your order has been cancelled right now."


def build_pairs(rows, tools=()):
    left_out, chosen = Counter(), ((n, row) for n, row in enumerate(rows) if not row.loose_calls)
    return list(build(rows, chosen, left_out, tools)), {
        why.removeprefix("candidate pairs: "): n for why, n in left_out.items()
    }


def said(text):
    return Message(role="assistant", content=text)


def test_a_kept_and_a_dropped_rollout_part_at_the_first_turn_that_differs(make):
    right = make.row(messages=make.talk(said(GOOD)), verdict=True)
    wrong = make.row(messages=make.talk(said(BAD), Message(role="user", content="ok")), rollout=1, verdict=False)
    (pair,), left_out = build_pairs([right, wrong])
    assert pair.prompt == right.messages[:2] == wrong.messages[:2]
    assert (pair.chosen["content"], pair.rejected["content"]) == (GOOD, BAD)
    assert (pair.cause, pair.reason, pair.rows) == ("rollouts", "because", ("s001/r0", "s001/r1"))
    assert not left_out


def test_ids_of_calls_and_thoughts_are_no_difference(make):
    look = '{"order_id": "W1"}'
    reply = Message(role="tool", content="{}", tool_call_id="call_1")
    other = Message(role="tool", content="{}", tool_call_id="call_9")
    right = make.row(messages=make.talk(make.call("get_order", look), reply, said(GOOD)), verdict=True)
    messages = make.talk(make.call("get_order", '{"order_id":"W1"}', "call_9"), other, said(BAD))
    (pair,), _ = build_pairs([right, make.row(messages=messages, rollout=1, verdict=False)])
    assert pair.rejected["content"] == BAD
    assert len(pair.prompt) == 4


def test_candidates_that_give_no_pair_are_counted(make):
    right = make.row(messages=make.talk(said(GOOD), Message(role="user", content="why?"), said(GOOD)), verdict=True)

    def wrong(rollout, *messages, **more):
        return make.row(messages=make.talk(*messages), rollout=rollout, verdict=False, **more)

    rows = [
        right,
        wrong(1, said(GOOD), Message(role="user", content="why?"), said(GOOD)),
        wrong(2, said(GOOD), Message(role="user", content="how come?"), said(BAD)),
        wrong(3, said(BAD * 4)),
        wrong(4, said(GOOD), Message(role="user", content="why?"), said(BAD), findings=(make.finding(index=2),)),
        wrong(5, make.call("cancel_order", "{broken")),
        wrong(6, said(GOOD), said(BAD)),
        wrong(8, said(BAD), Message(role="user", content="why?"), said(BAD), findings=(make.finding(index=4),)),
        wrong(7, said(BAD), findings=(make.finding("broke_persona", index=1),)),
        make.row(card="s002", messages=make.talk(said(BAD)), verdict=False),
    ]
    pairs, left_out = build_pairs(rows)
    assert not pairs
    assert left_out == {
        "no rollout of the card was kept": 1,
        "spoiled by the customer": 1,
        "customer or world differ first": 2,
        "lengths beyond a factor of two": 1,
        "never differ": 1,
        "parted before it went wrong": 1,
        "wrong before they differ": 1,
    }


def test_twins_give_a_pair_each_way_after_the_result_that_differs(make):
    look = make.call("get_order", '{"order_id": "W1"}')

    def twin(card, result, answer, **more):
        reply = Message(role="tool", content=result, tool_call_id="call_1")
        return make.row(card=card, messages=make.talk(look, reply, said(answer)), verdict=True, **more)

    there = twin("s001", '{"status": "open"}', "I have found it. Shall I cancel it for you?")
    gone = twin(
        "s001t",
        '{"error": "not found"}',
        "I cannot find it. Is the number right?",
        twin_of="s001",
        values={"world_state": "missing"},
    )
    pairs, _ = build_pairs([there, gone])
    assert [p.rows for p in pairs] == [("s001/r0", "s001t/r0"), ("s001t/r0", "s001/r0")]
    for pair, right, wrong in zip(pairs, (there, gone), (gone, there), strict=True):
        assert pair.prompt == right.messages[:4]
        assert pair.chosen == right.messages[4]
        assert pair.rejected == wrong.messages[4]
        assert pair.cause == "twins"
    assert pairs[0].reason == "Here world_state is exists; the other answer is right where it is missing"


def test_twins_whose_customers_differ_first_give_no_pair(make):
    there = make.row(messages=make.talk(said(GOOD)), verdict=True)
    gone = make.row(card="s001t", messages=make.talk(said(BAD)), verdict=True, twin_of="s001")
    pairs, left_out = build_pairs([there, gone])
    assert not pairs
    assert left_out == {"no tool result differs first": 1}


def test_a_missing_call_speaks_against_a_turn_that_gives_up_not_against_another_wording(make):
    """Both ask for the same thing and one customer leaves: neither question is wrong."""
    look, tail = make.call("get_order", '{"order_id": "W1"}'), Message(role="user", content="ok")
    oracle = Oracle(must_call=(CallRule(name="get_order"),), ends=("resolved",), why="It may be.")
    right = make.row(messages=make.talk(said("Which order is it?"), tail, look), verdict=True, oracle=oracle)

    def wrong(rollout, *messages):
        row = make.row(messages=make.talk(*messages), rollout=rollout, oracle=oracle)
        lost = Verdict(keep=False, reward=0.0, reason="get_order was never called", rule="oracle:must_call")
        return row.with_verdict(lost)

    for asks in ("To help you I need the order.", "Could you tell me the order?"):
        pairs, left_out = build_pairs([right, wrong(1, said(asks), tail, said("Which one?"))], make.tools)
        assert not pairs
        assert left_out == {"parted before it went wrong": 1}
    pairs, left_out = build_pairs(
        [right, wrong(1, make.call("transfer_to_human", "{}"), tail, said("Bye."))], make.tools
    )
    assert left_out == {"parted before it went wrong": 1}
    (pair,), _ = build_pairs([right, wrong(1, said("I cannot do that."), tail, said("Goodbye."))], make.tools)
    assert pair.rejected["content"] == "I cannot do that."


def test_a_fault_that_shows_later_says_so(make):
    right = make.row(messages=make.talk(make.call("get_order", '{"order_id": "W1"}'), said(GOOD)), verdict=True)
    bad = make.talk(make.call("get_order", '{"order_id": "W2"}'), Message(role="user", content="ok"), said(BAD))
    row = make.row(messages=bad, rollout=1, findings=(make.finding(index=4),))
    verdict = Verdict(keep=False, reward=0.0, reason="claimed", rule="check:claimed_action_without_call")
    (pair,), _ = build_pairs([right, row.with_verdict(verdict)])
    assert pair.reason == "claimed (seen 2 messages later)"


def test_rows_that_can_give_no_pair_are_looked_at_once(make):
    """Many rows need not be held: only cards with a right and a wrong rollout, or twins, are read again."""

    class Counting(list):
        asked = 0

        def __getitem__(self, place):
            self.asked += 1
            return super().__getitem__(place)

    rows = Counting([*(make.row(card=f"k{n}", messages=make.talk(said(GOOD)), verdict=True) for n in range(9)),
                     *(make.row(card=f"d{n}", messages=make.talk(said(BAD)), verdict=False) for n in range(9))])  # fmt: skip
    pairs, left_out = build_pairs(rows)
    assert (pairs, left_out, rows.asked) == ([], {"no rollout of the card was kept": 9}, 0)


TURNS = st.lists(st.sampled_from([GOOD, BAD, "Let me see.", "x" * 400]), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(TURNS, st.booleans()), min_size=2, max_size=5))
def test_whatever_the_rollouts_a_pair_shares_its_prompt_and_ends_in_one_turn_each(make, talks):
    rows = []
    for rollout, (texts, keep) in enumerate(talks):
        messages = [m for text in texts for m in (said(text), Message(role="user", content="go on"))][:-1]
        rows.append(make.row(messages=make.talk(*messages), rollout=rollout, verdict=keep))
    by_id = {row.id: row for row in rows}
    pairs, left_out = build_pairs(rows)
    dropped = sum(not keep for _, keep in talks)
    assert len(pairs) + sum(left_out.values()) == dropped
    for pair in pairs:
        right, wrong = (by_id[name] for name in pair.rows)
        cut = len(pair.prompt)
        assert pair.prompt == right.messages[:cut] == wrong.messages[:cut]
        assert pair.chosen == right.messages[cut] != wrong.messages[cut] == pair.rejected
        assert pair.chosen["role"] == pair.rejected["role"] == "assistant"
