"""What a customer says so that a clause comes up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.cards.needs import RUN, Phrasebook, deed, second_person, thing
from whilesim.core.templates import load_words
from whilesim.core.text import words
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.axes import HISTORIES, STANCES, TOOL_CONDITIONS, WORLD_STATES
from whilesim.situations.policy import Clause, Policy, parse_policy
from whilesim.situations.tools import Tool, parse_tools
from whilesim.world.mock import Focus

VALUES = (*TOOL_CONDITIONS, *WORLD_STATES, *STANCES, *HISTORIES)


def book_of(*texts: str) -> tuple[Phrasebook, list[Clause]]:
    kinds = ["must_not" if "Never" in t or "not" in t.split()[:3] or "cannot" in t else "must" for t in texts]
    clauses = [Clause(id=f"c{i}", text=t, kind=k) for i, (t, k) in enumerate(zip(texts, kinds, strict=True))]  # type: ignore[arg-type]
    policy = Policy(text="\n".join(texts), clauses=tuple(clauses))
    return Phrasebook(policy, parse_tools(demo_tools()), VALUES), clauses


@pytest.mark.parametrize(
    ("rule", "said", "form"),
    [
        ("If the customer travels abroad, switch roaming on.", "I travel abroad.", "circumstance"),
        ("Transfer the customer to a nurse when they report chest pain.", "I report chest pain.", "circumstance"),
        ("When a guest has lost the key, charge 20 dollars.", "I have lost the key.", "circumstance"),
        ("Never give out another customer's bill.", "give out somebody else's bill", "request"),
        ("Never share the customer's address.", "share my address", "request"),
        ("Do not rebook a late flight.", "rebook a late flight", "request"),
        ("Tell the customer the price before the change.", "you tell me the price before the change", "question"),
        ("Basic fares cannot be changed.", "can basic fares be changed after all?", "request"),
        ("Be sure to lock it.", "will you be sure to lock it?", "question"),
        (
            "When a guest already has a key and wants another, charge 20 dollars.",
            "I already have a key and want another",
            "circumstance",
        ),
        ("Refunds stay within 30 days.", "refunds stay within 30 days", "question"),
    ],
)
def test_a_rule_becomes_something_a_customer_says(rule: str, said: str, form: str) -> None:
    book, (clause,) = book_of(rule)
    need = book.need(clause, 0)
    assert said.lower() in need.text.lower().replace("could", "can")
    assert need.form == form


def test_a_condition_that_is_met_makes_the_clause_apply_and_a_question_does_not() -> None:
    book, clauses = book_of(
        "If the customer is a minor, hand over.", "Only help if the customer is verified.", "Check the date."
    )
    assert [book.need(c, 0).applies for c in clauses] == ["yes", "unknown", "unknown"]


@pytest.mark.parametrize("seed", range(4))
def test_no_run_of_six_words_of_the_policy_is_said(seed: int) -> None:
    policy = parse_policy(demo_policy())
    book = Phrasebook(policy, parse_tools(demo_tools()), VALUES)
    said = words(policy.text)
    runs = {tuple(said[i : i + RUN]) for i in range(len(said) - RUN + 1)}
    for clause in policy.clauses:
        mine = words(book.need(clause, seed).text)
        assert not runs & {tuple(mine[i : i + RUN]) for i in range(len(mine) - RUN + 1)}, clause.id


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["the", "card", "of", "an", "owner", "must", "never", "be", "given", "to", "any", "other", "one"]
        ),
        min_size=6,
        max_size=30,
    )
)
def test_any_quotation_is_broken(quoted: list[str]) -> None:
    book, _ = book_of(" ".join(quoted))
    mine = words(book.clean(" ".join(quoted)))
    runs = {tuple(quoted[i : i + RUN]) for i in range(len(quoted) - RUN + 1)}
    assert not runs & {tuple(mine[i : i + RUN]) for i in range(len(mine) - RUN + 1)}


def test_tool_names_and_axis_values_are_not_said_but_facts_are() -> None:
    book, _ = book_of("Be kind.")
    said = book.clean("use get_bill, I am unsure about the duplicate W-missing-1", ["W-missing-1"])
    assert said == "use get bill, I am not certain about the double W-missing-1"


@pytest.mark.parametrize(
    ("name", "description", "kind", "subject", "asked"),
    [
        ("cancel_pending_order", "Cancel a pending order.", "order", "my order W1", "cancel my order W1"),
        ("modify_pending_order_items", "Modify items.", "order", "my order W1", "modify the items of my order W1"),
        ("modify_user_address", "Modify the address.", "user", "my account", "modify the address of my account"),
        ("send_certificate", "Send a certificate.", None, "", "send a certificate"),
        ("enableRoaming", "Enables roaming on a line.", "line", "my line L1", "enable the roaming for my line L1"),
    ],
)
def test_a_tools_deed_is_said_as_a_customer_asks_for_it(
    name: str, description: str, kind: str | None, subject: str, asked: str
) -> None:
    tool = Tool(name=name, description=description, parameters={}, effect="write")
    assert deed(tool, Focus(tool=name, arguments={}, kind=kind, object=subject)) == asked


def test_a_reading_tool_is_named_by_what_it_reads() -> None:
    tool = Tool(name="get_data_usage", description="Get the data usage.", parameters={}, effect="read")
    assert (
        thing(tool, Focus(tool=tool.name, arguments={}, kind="line", object="my line L1"))
        == "the data usage of my line L1"
    )


def test_a_goal_speaks_to_the_customer() -> None:
    assert second_person("I want my bill, tell me") == "You want your bill, tell you"


def test_no_replacement_can_be_replaced_again() -> None:
    soften = load_words("cards_en")["soften"]
    assert not [word for said in soften.values() for word in words(said) if word in soften]


def test_short_facts_survive_beside_long_ones() -> None:
    book, _ = book_of("Be kind.")
    assert book.clean("origin 10, bags 1, id U10", ["10", "1", "U10"]) == "origin 10, bags 1, id U10"


def test_a_run_that_ends_like_a_filler_is_broken_too() -> None:
    rule = "Then send the message you are on hold, say, well, I mean it, you know."
    book, _ = book_of(rule)
    mine = words(book.clean(rule))
    quoted = words(rule)
    runs = {tuple(quoted[i : i + RUN]) for i in range(len(quoted) - RUN + 1)}
    assert not runs & {tuple(mine[i : i + RUN]) for i in range(len(mine) - RUN + 1)}
