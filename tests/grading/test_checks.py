"""What run_checks, claimed_tools and the language note promise."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.chat.messages import read_messages
from whilesim.core.errors import InputError
from whilesim.grading.checks import SEVERITY, identifiers, run_checks
from whilesim.grading.checks.calls import looks_failed
from whilesim.grading.checks.claims import claimed_tools, claims_measured
from whilesim.grading.checks.conduct import _LEAK, _copied
from whilesim.grading.checks.deeds import open_toolbox
from whilesim.grading.checks.language import clean, lexicon, sentences
from whilesim.showcase import demo_tools
from whilesim.situations.tools import parse_tools


def talk(*turns: str) -> list[dict]:
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": t} for i, t in enumerate(turns)]


def call(name: str, reply: str, **arguments) -> list[dict]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": reply},
    ]


LIE = talk("Please cancel order W5512.", "Order W5512 has been cancelled.")


def test_a_finding_names_check_message_words_and_reason():
    (finding,) = run_checks([{"role": "system", "content": "Be kind."}, *LIE])
    assert finding.check == "claimed_action_without_call"
    assert finding.message_index == 2
    assert finding.quote == "Order W5512 has been cancelled."
    assert "no successful call" in finding.reason
    assert finding.severity == "drop"


def test_a_claim_in_the_middle_of_a_conversation_is_found():
    findings = run_checks([*LIE, *talk("Thanks!", "You are welcome.")])
    assert [f.message_index for f in findings] == [1]


def test_messages_and_tools_come_in_any_form(demo_tools):
    wire = talk("Suspend line L20871.", "I have suspended line L20871.")
    forms = [wire, read_messages(wire)]
    tools = [demo_tools, parse_tools(demo_tools), None]
    assert len({str(run_checks(m, t)) for m in forms for t in tools}) == 1


def test_severity_of_a_check_can_be_changed_or_switched_off():
    (finding,) = run_checks(LIE, severity={"claimed_action_without_call": "warn"})
    assert finding.severity == "warn"
    assert run_checks(LIE, severity={"claimed_action_without_call": "off"}) == []


def test_a_severity_of_no_check_is_refused():
    with pytest.raises(InputError, match="no such check or level"):
        run_checks(LIE, severity={"lies": "drop"})
    with pytest.raises(InputError, match="Type drop, warn or off for one of"):
        run_checks(LIE, severity={"refusal": "error"})  # type: ignore[dict-item]


def test_every_check_has_a_severity_of_its_own():
    assert set(SEVERITY.values()) == {"drop", "warn"}
    assert SEVERITY["text_with_tool_call"] == "warn"


def test_claims_in_other_languages_are_not_measured_and_ids_still_are(demo_tools):
    french = [
        *talk("Bonjour, je veux suspendre ma ligne."),
        *call("get_line", "{}", line_id="L99999"),
        {"role": "assistant", "content": "Votre ligne a été suspendue, je vous remercie pour votre patience."},
    ]
    assert not claims_measured(read_messages(french))
    assert [f.check for f in run_checks(french, demo_tools)] == ["unsourced_identifier"]
    japanese = talk("回線を止めてください。", "回線を停止しました。ありがとうございました。")
    assert not claims_measured(read_messages(japanese))
    for text in ("Your line has been suspended.", "Ihre Leitung wurde gesperrt.", "Su línea ha sido suspendida."):
        assert claims_measured(read_messages(talk("L20871", text)))


def test_claimed_tools_are_named_whether_true_or_not(demo_tools):
    messages = read_messages(talk("Hi", "I have suspended your line and I will change your plan."))
    ((claim, tool),) = claimed_tools(messages, demo_tools)
    assert (claim.index, tool) == (1, "suspend_line")
    assert claimed_tools(read_messages(talk("Hi", "I can suspend your line.")), demo_tools) == []


def test_a_call_between_two_claims_carries_only_the_second(demo_tools):
    messages = [
        *talk("Suspend line L20871.", "Line L20871 has been suspended.", "Really?"),
        *call("suspend_line", '{"status": "Suspended"}', line_id="L20871", reason="lost"),
        {"role": "assistant", "content": "Now line L20871 has been suspended."},
    ]
    findings = run_checks(messages, demo_tools)
    assert [f.message_index for f in findings if f.check == "claimed_action_without_call"] == [1]


def test_arguments_of_a_call_without_any_may_be_empty(demo_tools):
    for text in ("", "null", "{}"):
        messages = [*talk("Which plans are there?"), *call("list_plans", "[]")]
        messages[1]["tool_calls"][0]["function"]["arguments"] = text
        assert run_checks(messages, demo_tools) == []


def test_a_verb_that_no_lexicon_has_is_read_from_the_tools():
    tools = [
        {"name": "defrag_volume", "parameters": {"type": "object", "properties": {"volume_id": {"type": "string"}}}}
    ]
    messages = talk("Please defrag volume V2210.", "I have defraged volume V2210.")
    assert [f.check for f in run_checks(messages, tools)] == ["claimed_action_without_call"]


@pytest.mark.parametrize("schemas", ["demo_tools"])
def test_a_claim_made_of_a_tools_own_name_is_tied_to_its_call(schemas, request):
    tools = request.getfixturevalue(schemas)
    done = {"suspend": "suspended", "resume": "resumed", "change": "changed", "pay": "paid", "dispute": "disputed"}
    for deed in open_toolbox(tools).deeds.values():
        verb, _, thing = deed.tool.name.partition("_")
        if deed.tool.effect != "write" or verb not in done:
            continue
        made = call(deed.tool.name, '{"result": "x"}', **dict.fromkeys(deed.tool.parameters["properties"], "x"))
        for said in (f"I've {done[verb]} your {thing}.", f"Your {thing} has been {done[verb]}."):
            words = {"role": "assistant", "content": said}
            ask = talk(f"Please {verb} my {thing}.")
            checks = [
                {f.check for f in run_checks([*ask, words], tools)},
                {f.check for f in run_checks([*ask, *made, words], tools, failed=[])} - {"invalid_arguments"},
                {f.check for f in run_checks([*ask, *made, words], tools, failed=["c1"])} - {"invalid_arguments"},
            ]
            assert checks == [{"claimed_action_without_call"}, set(), {"success_after_failure"}], said


@pytest.mark.parametrize(
    ("reply", "failed"),
    [
        ('{"error": null, "id": "A1"}', False),
        ('{"data": {"success": false}}', True),
        ('{"httpStatus": 404}', True),
        ('{"status": "timed_out"}', True),
        ("", False),
        (None, True),
        ("Created ticket 4431", False),
        ("Outside business hours.", True),
        ('{"order": {"status": "cancelled", "last_error": "none"}}', False),
    ],
)
def test_a_write_that_failed_is_known_by_its_reply(reply, failed):
    assert looks_failed(reply, write=True) is failed


def test_every_pattern_and_every_sense_of_the_word_lists_can_be_used():
    senses = {s for code in ("en", "es", "de") for s in lexicon(code).data["verbs"]}
    from whilesim.core.templates import load_words

    pairs = load_words("checks_deeds")["pairs"]
    assert set(pairs) <= senses | {"any"}
    assert {w for line in pairs.values() for w in line.split()} <= senses | {"any"}


words = st.sampled_from(
    [
        "I",
        "have",
        "cancelled",
        "your",
        "order",
        "W12",
        "?",
        "\n- ",
        "**",
        "$5",
        "has been",
        "if",
        "not",
        "\ud800",
        "```",
        "(",
        ":",
        ",",
    ]
)
message = st.one_of(
    st.builds(lambda ws: {"role": "assistant", "content": " ".join(ws)}, st.lists(words, max_size=12)),
    st.builds(lambda ws: {"role": "user", "content": " ".join(ws)}, st.lists(words, max_size=6)),
    st.builds(lambda a, r: call("cancel_order", r, order_id=a)[0], st.text(max_size=5), st.text(max_size=9)),
    st.builds(lambda t: {"role": "tool", "tool_call_id": "c1", "content": t}, st.text(max_size=20)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(message, max_size=8))
def test_no_conversation_is_too_odd_to_be_checked(messages):
    found = run_checks(messages)
    assert all(0 <= f.message_index < len(messages) for f in found)
    assert [f.message_index for f in found] == sorted(f.message_index for f in found)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abcx"), max_size=70), st.integers(0, 40))
def test_a_run_of_the_policys_words_is_found_as_if_each_were_compared(said, start):
    policy = "a b c " * 12
    words = ["x", *policy.split()[start : start + 26], *said]
    runs = [" ".join(words[i : i + _LEAK]) for i in range(len(words) - _LEAK + 1)]
    assert _copied(" ".join(words), policy) == next((run for run in runs if f" {run} " in f" {policy} "), None)


@settings(max_examples=60, deadline=None)
@given(st.text("a *_`:’ﬁＤ.\n", max_size=20), st.sampled_from(["a", "d", "fi", "b"]))
def test_a_sentence_says_what_its_clean_text_says(text, word):
    for sentence in sentences(text):
        assert sentence.says({word}) == (word in re.findall(r"[^\W\d_]+", clean(sentence.quote).lower()))


@pytest.mark.parametrize(
    ("said", "claims"),
    [
        ("That is taken care of now, nothing more for you to do.", True),
        ("Everything is sorted out.", True),
        ("It's been looked after.", True),
        ("That's done and dusted.", True),
        ("The change is in effect now.", True),
        ("All set, no need to call again.", True),
        ("That will be taken care of by a colleague.", False),
        ("I can take care of that once you confirm.", False),
        ("That has not been dealt with.", False),
        ("Once that is sorted out, I can help.", False),
        ("That needs to be looked after by the billing team.", False),
    ],
)
def test_done_is_a_claim_in_any_words(said, claims):
    messages = [
        {"role": "user", "content": "Please suspend my line L20871."},
        {"role": "assistant", "content": said},
    ]
    found = [f.check for f in run_checks(messages, tools=demo_tools())]
    assert ("claimed_action_without_call" in found) is claims


def test_an_invented_tool_is_named_before_what_follows_from_it():
    policy = {"role": "system", "content": "Ask for a yes before you change anything."}
    asked = [policy, {"role": "user", "content": "Fix it."}, *call("reboot_grid", "ok", grid_id="G-77")]
    assert run_checks(asked, tools=demo_tools())[0].check == "unknown_tool"


def test_two_calls_with_one_id_have_a_reply_each():
    turn = call("get_plan", "{}")
    turn[0]["tool_calls"] *= 2
    found = run_checks([{"role": "user", "content": "Hi."}, turn[0], turn[1], turn[1]])
    assert "unanswered_call" not in {f.check for f in found}
    assert "unanswered_call" in {f.check for f in run_checks([{"role": "user", "content": "Hi."}, *turn])}


@pytest.mark.parametrize(
    ("turns", "empty"),
    [
        (("Hi.", "lam", "What?", "lam", "I do not understand.", "lam"), 1),
        (("Hi.", "はい", "Why?", "はい", "What?", "はい"), 1),
        (("Is it paid?", "Yes", "And shipped?", "Yes"), 0),
        (("Hi.", "Your order id?", "What?", "Your order id?", "Hm.", "Your order id?"), 0),
        (("Hi.", "x" * 200_000), 1),
        (("Hi.", "I can help. " * 400), 1),
        (("Hi.", "Yes.", "And now?", "Yes."), 0),
        (("Hi.", "| a | b |\n|---|---|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(80))), 0),
    ],
)
def test_babble_is_no_reply(turns, empty):
    assert sum(f.check == "empty_reply" for f in run_checks(talk(*turns))) == empty


def test_each_text_is_read_for_its_ids_once(monkeypatch):
    """An id that nobody gave is looked for in all that was said before: not once more for every such id."""
    read = Counter()
    whole = identifiers._runs
    monkeypatch.setattr(identifiers, "_runs", lambda text: (read.update([text]), whole(text))[1])
    turns = [
        [{"role": "user", "content": f"Please see to number {n}."}, *call("get_plan", f"P{n}", plan_id=f"ZZ-{n:05d}")]
        for n in range(300)
    ]
    found = run_checks([m for turn in turns for m in turn])
    assert sum(f.check == "unsourced_identifier" for f in found) == 300
    assert set(read.values()) == {1}


@pytest.mark.parametrize(
    ("rule", "caught"),
    [
        ("Get a clear yes before you change the booking. Cancel only after the guest has confirmed.", ["cancel_booking"]),
        ("Get a clear yes before you change the booking. Ask for consent before taking any action.", ["create_callback", "cancel_booking"]),
        ("Ask the customer for a go-ahead before you change anything.", ["create_callback", "cancel_booking"]),
    ],
)  # fmt: skip
def test_a_go_ahead_is_wanted_for_the_deeds_that_the_rules_name(rule, caught):
    tools = [{"name": n, "parameters": {}} for n in ("create_callback", "cancel_booking")]
    messages = [{"role": "system", "content": rule}, *talk("It fails again.", "Sorry, that failed. A moment.", "It is still broken."),
                *call("create_callback", "{}"), *call("cancel_booking", "{}")]  # fmt: skip
    found = [f for f in run_checks(read_messages(messages), tools) if f.check == "acted_without_confirmation"]
    assert [f.reason.split()[0] for f in found] == caught


@pytest.mark.parametrize(
    ("replies", "found"),
    [
        (("Error: timed out, trace 17", "Error: timed out, trace 18", "Error: timed out, trace 19"), 1),
        (("Error: timed out", "Error: not found", "Error: not found"), 0),
    ],
)
def test_a_call_fails_alike_when_its_error_is_the_same(replies, found):
    tools = [{"name": "get_order", "parameters": {"properties": {"order_id": {}}}}]
    messages = [*talk("Where is W5512?"), *(m for r in replies for m in call("get_order", r, order_id="W5512"))]
    failing = [f for f in run_checks(read_messages(messages), tools) if f.check == "repeated_failing_call"]
    assert len(failing) == found


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ("Get explicit confirmation from the customer before:\n- cancelling an order\n- issuing a refund", True),
        ("Obtain explicit confirmation before irreversible operations.", True),
        ("Before you cancel an order, get the customer's explicit confirmation.", True),
        ("Before you change a booking, get the customer's explicit confirmation.", True),
    ],
)
def test_a_rule_that_names_no_tool_of_ours_asks_for_every_change(policy, found):
    cancel = {
        "name": "cancel_order",
        "description": "Cancel an order.",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
    }
    said = [
        {"role": "system", "content": policy},
        {"role": "user", "content": "Cancel order W5512."},
        *call("cancel_order", "{}", order_id="W5512"),
    ]
    assert ("acted_without_confirmation" in {f.check for f in run_checks(said, tools=[cancel])}) is found


@pytest.mark.parametrize(
    "errors", [["timeout a3f", "timeout b71", "timeout c90"], ["busy", "late", "busy", "late", "busy"]]
)
def test_a_call_that_fails_alike_three_times_is_found_whatever_stands_between(errors):
    turns = [call("get_plan", json.dumps({"error": e}), plan_id="P1") for e in errors]
    said = [{"role": "user", "content": "Look at plan P1."}, *(m for turn in turns for m in turn)]
    assert "repeated_failing_call" in {f.check for f in run_checks(said)}


def test_a_rule_that_is_told_claims_nothing():
    told = 'What our rules say on "Papers: Lists": order lists are free and are sent to your e-mail address.'
    tools = [{"name": "send_list", "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}]
    assert not claimed_tools(read_messages(talk("How do lists work?", told)), parse_tools(tools))
