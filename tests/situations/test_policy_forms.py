"""Forms in which policies come, and turns of phrase: what each makes a rule, and its neighbour that stays what it was."""

from __future__ import annotations

import json
import time

import pytest

from whilesim.situations.documents import read_document
from whilesim.situations.policy import parse_policy

PROMPT = {
    "model": "small",
    "system_prompt": {
        "persona": "You are the desk of a tool rental.",
        "rules": ["Check the ID before you release a machine.", "Chainsaws are never rented out on Sundays."],
        "refuse": ["rentals without a card", "trips abroad"],
        "transfer_to_human": ["a machine came back broken"],
        "fees": [{"name": "late", "text": "Never waive more than one late fee."}],
    },
    "closing": "Always thank the customer.",
    "max_tokens": 512,
}
TOLD = [
    ("Check the ID before you release a machine.", "must"),
    ("Chainsaws are never rented out on Sundays.", "must_not"),
    ("rentals without a card", "must_not"),
    ("trips abroad", "must_not"),
    ("a machine came back broken", "handoff"),
    ("Never waive more than one late fee.", "must_not"),
    ("Always thank the customer.", "must"),
]


def read(text: str) -> list[tuple[str, str]]:
    return [(c.text, c.kind) for c in parse_policy(text).clauses]


@pytest.mark.parametrize("indent", [None, 1, 2, "\t"], ids=["one line", "1", "2", "tabs"])
def test_a_prompt_in_json_is_read_box_by_box_and_keeps_its_places(indent):
    source = json.dumps(PROMPT, indent=indent)
    clauses = parse_policy(source).clauses
    assert [c.kind for c in clauses] == [kind for _, kind in TOLD]
    assert all(source[slice(*c.span)].endswith(said.rstrip(".")) or said in source[slice(*c.span)]
               for c, (said, _) in zip(clauses, TOLD, strict=True))  # fmt: skip


def test_what_users_say_in_json_is_no_rule_and_square_brackets_in_prose_are_no_json():
    talk = [{"role": "system", "content": "Never share codes."}, {"role": "user", "content": "You must tell me now."}]
    assert read(json.dumps(talk)) == [("Never share codes.", "must_not")]
    assert read('["North" desk] Never share codes.') != []
    assert read("[Company] policy\n\n- Never share codes.")[0][0].endswith("Never share codes.")


@pytest.mark.parametrize(
    "text", ['[{"a":' * 9_000, '{"' * 20_000, '{"a":' + " " * 40_000, '["' + "\\" * 40_001, " ," * 20_000 + "{"]
)
def test_hostile_json_keeps_its_length_and_is_read_in_one_go(text):
    start = time.perf_counter()
    assert len(read_document('{"a": ' + text).text) == len(text) + 6
    assert time.perf_counter() - start < 5


def test_keys_of_yaml_are_headings_without_block_scalars_and_plain_labels_stay_labels():
    source = "model: small\nguardrails:\n  - no legal advice\nescalation:\n  when:\n    - data loss is suspected\n"
    assert read(source) == [("no legal advice", "must_not"), ("when: data loss is suspected", "handoff")]
    assert read("Desk: North\nMust do:\n  - greet people\nMust not do:\n  - argue\n")[0][0].endswith("greet people")


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("1. ACCESS TO ACCOUNTS\n\n   Confirm the plate first.\n\n2. STOLEN TAGS\n\n   Block the tag first.\n", 2),
        ("1. STAY CALM\n\n2. BE POLITE\n\n3. NEVER ARGUE\n", 0),
        ("Hand over to the lead:\na) Accident\nb) Child alone\nc) Press\n\nGreet people.\n", 0),
        ("Version 7 - effective 1 February 2025\n\n§ 4 Payments\n4.1 The fee is $10 per case.\n", 1),
    ],
    ids=["titles in capitals", "orders in capitals", "the last letter of a list", "a dated line"],
)
def test_what_is_a_heading_of_the_rules_below_it(text, headings):
    sections = {c.section for c in parse_policy(text).clauses} - {""}
    assert len(sections) == headings
    assert not any("Version" in s or "Press" in s for s in sections)


def test_parallel_conditions_are_rules_of_their_own_and_a_broken_sentence_stays_whole():
    lines = (
        "IF the purchase was a gift from a friend THEN refund the giver of the gift\n"
        "IF the account of the player is banned from the game THEN no refund at all\n"
    )
    assert [kind for _, kind in read(lines)] == ["must", "must_not"]
    broken = "Refund the fee when the customer has waited for more than three weeks and\nWhen asked say why that took so long for once.\n"
    assert len(read(broken)) == 1


def test_a_question_that_is_a_statement_has_its_answers_and_its_own_heading():
    told = read(
        "**Q: What about lenses?**\nA: Unopened boxes only.\n\nQ: Somebody lost a book.\nA: Charge its price. Never charge late fees.\n"
    )
    assert told[-2:] == [
        ("Somebody lost a book.: Charge its price.", "must"),
        ("Somebody lost a book.: Never charge late fees.", "must_not"),
    ]
    assert len(read("When: the box is broken\nAction: Refund it. Never ask for it back.")) == 1


def test_a_column_of_permissions_permits_and_a_yes_of_another_column_does_not():
    table = "| Action | {} |\n|---|---|\n| Resend a ticket within 5 days | yes |\n| Read seats to others | no |\n"
    assert [k for _, k in read(table.format("Allowed?"))] == ["may", "must_not"]
    assert [k for _, k in read(table.format("Approval?"))] == ["condition", "must_not"]


@pytest.mark.parametrize("header", ["||Situation||Action", "||Situation||Action|", "||Situation||Action||"])
def test_a_wiki_header_need_not_be_closed(header):
    (told,) = read(f"h2. Desk\n{header}\n|Lost ticket|Charge $20|\n")
    assert told[0] == "Desk: Situation: Lost ticket; Action: Charge $20"
    assert "Situation" in read("| Situation | Action |\n|---|---|\n|| Charge $20 |\n| Lost | Charge $5 |\n")[-1][0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Under no circumstances accept gift cards as payment.", "must_not"),
        ("Representatives may waive one late fee per account per calendar year.", "may"),
        ("No se admiten bajas por teléfono.", "must_not"),
        ("Pets older than ten are excluded from cover.", "must_not"),
        ("Requests that are refused must be logged.", "must"),
        ("Nothing ships without a signature.", "must_not"),
        ("Opened software is non-returnable.", "must_not"),
        ("Stop offering the old plan.", "must_not"),
        ("Stop the engine.", "must"),
        ("Warranty claims need a serial number.", "must"),
        ("If cargo needs a form", None),
        ("Our representatives work in shifts.", None),
        ("Representatives request the image of the crossing.", "must"),
        ("Demande de remboursement par courrier", None),
        ("Demande le numéro de dossier au client.", "must"),
        ("Partial refunds are OK.", "may"),
        ("It's fine to end abusive calls.", "may"),
        ("Refund at once.", "must"),
        ("More than that needs a store manager's OK.", "must"),
        ("If the card was stolen then block it.", "must"),
        ("IF the account is banned THEN no refund", "must_not"),
        ("Chargebacks -> finance.", "handoff"),
        ("Leases -> leasing office", "handoff"),
        ("Settings -> Security", None),
        ("Menu -> Legal", None),
        ("If you cannot find it, Mehmet in Key Accounts takes over.", "handoff"),
        ("Press inquiries go to PR.", "handoff"),
        ("Send the dispute to the image review queue.", "handoff"),
        ("We want you to love what you ordered.", None),
        ("We expect you to log each call.", "must"),
        ("After that the full fee is due, unless the room was closed.", "condition"),
        ("Created by Dana Whitlock, last modified on Mar 04, 2025", None),
        ("Pas d'échange pour les livres soldés.", "must_not"),
        ("Le conseiller vérifie systématiquement le numéro de dossier.", "must"),
        ("Vous êtes l'agent du service client de la ville.", None),
        ("Si le ticket est perdu, retrouve l'achat dans la liste des commandes.", "must"),
        ("Bei höherer Gewalt besteht kein Anspruch auf Entschädigung.", "must_not"),
        ("Diese Anweisung gilt für alle Mitarbeitenden und für den Assistenten.", None),
        ("Diese Regel gilt nur für Reisen nach dem 1. Mai und für Gruppen.", "condition"),
        ("Pedidos de más de 150 € los lleva el encargado.", "handoff"),
    ],
)
def test_what_a_sentence_says(text, kind):
    assert [k for _, k in read(text)] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("What can be returned", "condition"),
        ("Ce que tu ne dois pas faire", "must_not"),
        ("An Menschen übergeben", "handoff"),
        ("Refuse", "must_not"),
    ],
)
def test_headings_say_what_a_phrase_below_them_is(heading, kind):
    assert [k for _, k in read(f"# Desk\n\n## {heading}\n- livres et disques\n\n## Shops\n- rue du Lac\n")] == [kind]


def test_a_menu_of_a_page_is_no_rule():
    page = "<html><body><nav><ul><li>Contact us</li></ul></nav><main><h1>Desk</h1><ul><li>Contact us first.</li></ul></main></body></html>"
    assert read(page) == [("Contact us first.", "must")]
