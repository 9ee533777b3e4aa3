"""What a customer says so that a clause comes up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.cards.needs import RUN, Phrasebook
from whilesim.cards.speech import names_in, second_person
from whilesim.core.templates import load_words
from whilesim.core.text import words
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.axes import HISTORIES, STANCES, TOOL_CONDITIONS, WORLD_STATES
from whilesim.situations.policy import Clause, Policy, parse_policy
from whilesim.situations.tools import parse_tools

VALUES = (*TOOL_CONDITIONS, *WORLD_STATES, *STANCES, *HISTORIES)


def book_of(*texts: str) -> tuple[Phrasebook, list[Clause]]:
    kinds = ["must_not" if "never" in t.lower() or "not" in t.split()[:3] or "cannot" in t else "must" for t in texts]
    clauses = [Clause(id=f"c{i}", text=t, kind=k) for i, (t, k) in enumerate(zip(texts, kinds, strict=True))]  # type: ignore[arg-type]
    policy = Policy(text="\n".join(texts), clauses=tuple(clauses))
    return Phrasebook(policy, parse_tools(demo_tools()), VALUES), clauses


@pytest.mark.parametrize(
    ("rule", "said", "form"),
    [
        ("If the customer travels abroad, switch roaming on.", "I travel abroad.", "circumstance"),
        (
            "Transfer the customer to a nurse when they report chest pain.",
            "I have to report chest pain.",
            "circumstance",
        ),
        ("When a guest has lost the key, charge 20 dollars.", "I have lost the key.", "circumstance"),
        (
            "If the patient asks about late arrival, name the fee.",
            "I have a question about late arrival.",
            "circumstance",
        ),
        ("When: Customer asks what to bring; Action: list it.", "I'd like to know what to bring.", "circumstance"),
        ("Escalate when the issue involves legal matters.", "This is about legal matters.", "circumstance"),
        ("If the user asks for a human, hand over.", "I'd like to talk to a person.", "circumstance"),
        ("Transfer to a person if the user asks for it.", "I'd like to talk to a person.", "circumstance"),
        ("If the line is suspended, do not sell it.", "My line is suspended.", "circumstance"),
        ("Do not rebook a late flight.", "rebook a late flight", "request"),
        ("Basic fares cannot be changed.", "can basic fares be changed?", "request"),
        ("The user cannot add a pet after boarding.", "can I add a pet after boarding?", "request"),
        ("The user cannot add a pet after check-in.", "can I add a pet?", "request"),
        ("The desk never gives a dose.", "give a dose", "request"),
        ("Never give price guarantees, and guarantees are never extended.", "give price guarantees", "request"),
        ("Price guarantees are never extended to others.", "can price guarantees be extended", "request"),
        ("If the tenant cuts themselves, hand over.", "I cut myself.", "circumstance"),
        ("If a pet died, end the contract.", "My pet died.", "circumstance"),
        (
            "Hand over when the guest reports a stolen phone or a fraud.",
            "I have to report a stolen phone.",
            "circumstance",
        ),
        (
            "If the tenant lost access to the keys of the flat, call a locksmith.",
            "I lost access to the keys",
            "circumstance",
        ),
        ("Never remove the last owner of a workspace.", "remove the last owner if", "request"),
        (
            "When a guest already has a key and wants another, charge 20 dollars.",
            "I already have a key and want another",
            "circumstance",
        ),
    ],
)
def test_a_condition_or_prohibition_becomes_something_a_customer_says(rule: str, said: str, form: str) -> None:
    book, (clause,) = book_of(rule)
    need = book.need(clause, 0)
    assert said.lower() in need.text.lower().replace("could", "can")
    assert need.form == form


@pytest.mark.parametrize(
    "rule", ["Waive the fee when the customer asks for it.", "Send a receipt if the customer wants one."]
)
def test_a_condition_that_only_points_back_says_nothing_by_itself(rule: str) -> None:
    book, (clause,) = book_of(rule)
    assert not re.search(r"\b(?:it|one)\W*$", book.need(clause, 0).text)


THEMES = [  # a rule, a theme of which the customer speaks, and words that must not be said
    ("Authenticate the user by email before anything else.", "identity", "authenticat"),
    ("List the action details and obtain explicit confirmation (yes) to proceed.", "confirm_first", "obtain|explicit"),
    ("Do not make up information that no tool gave.", "no_invention", "make up|tool"),
    ("Make only one tool call at a time.", "one_thing_at_a_time", "tool"),
    ("Never mention tool_code or print statements.", "inside_the_house", "tool_code"),
    ("Keep a friendly and empathetic tone.", "manners", "empathetic"),
    ("Help only one user per conversation.", "another_party", "conversation"),
    ("Never disclose another employee's salary.", "another_party", "never"),
    ("A larger refund needs the practice manager.", "person_wanted", "needs the"),
    ("A parcel can only be redirected if its status is 'sorted'.", "status_condition", "if its status"),
    ("Refunds must stay within 50 dollars.", "limit_of_amount", "must stay"),
    ("The refund arrives within 5 to 7 business days.", "waiting_for_money", "arrives within"),
    ("Bookings hold at most three guests.", "limit_of_number", "at most"),
    ("Send the refund to the original payment method.", "refund_way", "^Send"),
    ("Never promise a delivery date.", "promise", "never"),
    ("Ask the customer to restart the router.", "asked_to_do", "ask the customer"),
    ("Collect the account number.", "what_is_needed", "collect"),
    ("Deny requests that are against this policy.", "exception", "policy|deny"),
    ("Erase the profile on a GDPR request.", "deletion", "^erase"),
    ("Explain the termination fees.", "fee", "^explain the"),
    ("Dispute letters go to the card network.", "dispute", "letters go"),
    ("The clinic offers a flu vaccine.", "health", "^the clinic"),
    ("Suggest a fertilizer for the plant.", "recommendation", "^suggest"),
    ("Notify the owner of the outcome.", "news", "^notify"),
    ("Transfer to a supervisor.", "person_wanted", "^transfer to"),
    ("Answer in at most three sentences.", "manners", "more than three"),
    ("Antworte immer höflich auf Deutsch.", "manners", "höflich"),
]


@pytest.mark.parametrize(("rule", "theme", "never"), THEMES)
def test_a_rule_of_a_theme_becomes_a_sentence_of_that_theme(rule: str, theme: str, never: str) -> None:
    book, (clause,) = book_of(rule)
    says = load_words("themes_en")[theme]["says"]
    frames = [re.escape(s).replace("\\{", "{").replace("\\}", "}") for s in says]
    patterns = [re.sub(r"\{\w+\}", ".+", f) for f in frames]
    for seed in range(6):
        text = book.need(clause, seed, seed).text
        assert any(re.fullmatch(p, text, re.I) for p in patterns), text
        assert not re.search(never, text, re.I)


def test_rules_of_one_theme_are_told_apart_by_their_own_words() -> None:
    book, clauses = book_of("Be polite.", "Stay friendly.", "Greet people.", "Use plain language.", "No jargon.")
    needs = [book.need(c, 0) for c in clauses]
    assert len({n.about for n in needs}) == 5
    assert len({n.text for n in needs}) > 2


def test_what_is_said_for_a_rule_hangs_on_no_other_rule() -> None:
    rules = ["Be polite.", "If the guest is a gold member: one free breakfast.", "Refunds must stay within 50 dollars."]
    others = ["Boats anchor near the pier.", "Stay friendly.", "If the guest is a gold member: a late checkout."]
    book, clauses = book_of(*rules)
    crowded, among = book_of(*others, *rules)
    for mine, same in zip(clauses, among[3:], strict=True):
        assert book.need(mine, 0, "s1") == crowded.need(same, 0, "s1")


def test_where_no_theme_fits_the_customer_asks_about_what_sets_the_rule_apart() -> None:
    book, clauses = book_of("The lighthouse lamp turns at dusk.", "Boats anchor near the pier.")
    need = book.need(clauses[0], 0)
    assert need.source == "topic"
    assert "lighthouse lamp" in need.text
    assert "lighthouse lamp" in need.about


@pytest.mark.parametrize(
    ("rule", "never"),
    [
        ("Surgery is booked by the vets only, and never by the desk.", "by the desk"),
        ("We do not argue with insurers on the owner's behalf.", "argue|the insurance"),
        ("Anyone who depends on medical equipment goes straight to a colleague.", "visit|come in|your place"),
        ("The contract number is six digits long.", "contract may have|look past"),
        ("Look it up before opening a record.", "weekend|reach somebody"),
        ("An owner can move a visit up to 24 hours before it starts.", "the owner"),
        ("Events are forbidden. If a guest says they are planning one, note it on the booking.", "planning one"),
        ("Expense claims must be handed in with a receipt.", "shop says|booked"),
        ("A court summons with a document is a good reason.", "lawyer|rights"),
        ("If the guest sends one anyway, delete the photo.", "send one|the how"),
        ("For flats the floor is needed; without it the lease cannot be entered.", "without it"),
        ("Do not work out the rent yourself.", "yourself"),
        ("Do not tell the guest which of the two was wrong.", "tell me\\?"),
        ("It must be asked for by the end of the 4th week of term.", "end of the\\b"),
        ("Do not send links other than https://example.com/claims.", "https"),
        ("Hand over with a summary of at least one sentence.", "the sentence|the summary"),
        ("If the guest threatens legal action or names a lawyer, hand over.", "or name"),
        ("Offer the other guest a comparable room.", "brother|wife|somebody else"),
        ("Never disclose a salary to anybody, managers included.", "talk to|a person|who can"),
    ],
)
def test_no_question_is_made_of_half_a_phrase(rule: str, never: str) -> None:
    book, (clause,) = book_of(rule)
    assert not [t for s in range(8) if re.search(never, t := book.need(clause, s, s).text)]


def test_a_rule_in_another_language_than_the_policys_lends_its_own_nouns() -> None:
    book, (clause, _) = book_of("Wir nennen keine Tarife und vergleichen uns nicht mit ihnen.", "Boats anchor here.")
    said = {book.need(clause, s, s).text for s in range(8)}
    assert any("Tarife" in text for text in said)
    assert not [text for text in said if re.search("uns|ihnen|the Tarife", text)]


def test_rules_that_share_a_condition_are_told_apart_by_what_follows() -> None:
    book, clauses = book_of(
        "If the guest is a gold member: one free breakfast.", "If the guest is a gold member: a late checkout."
    )
    said = [book.need(c, 0).text for c in clauses]
    assert all(s.startswith("I'm a gold member. ") for s in said)
    assert said[0] != said[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Send the user a payment request for the overdue bill.", ["payment request", "overdue bill"]),
        ("Collect the date of birth and the phone number.", ["date of birth", "phone number"]),
        ("If `check_sim()` shows Locked, call set_mode(mode: str).", []),
        ("The price is higher than before.", ["price"]),
        ("Readings older than two weeks are refused.", ["readings"]),
        (
            "Controlled medicines (for instance phenobarbital) go to a vet.",
            ["controlled medicines", "phenobarbital", "vet"],
        ),
        ("Puppies under eight weeks are not weighed.", ["puppies"]),
        ("A fee of $35 applies to the past six.", ["fee"]),
        ("Look it up before opening a pet's record, no matter what.", ["pet's record"]),
        ("A reading goes to the back office on file.", ["reading", "back office"]),
        ("You may issue the voucher yourself.", ["voucher"]),
        ("Late check-in between nine and midnight costs €25.", ["late check-in"]),
        ("Vouchers are valid for 12 months.", ["vouchers"]),
        ("A change of more than 3 nights in a row costs €35.", ["change"]),
        ("An unpaid bill blocks new bookings.", ["unpaid bill", "new bookings"]),
        ("Block new bookings.", ["new bookings"]),
        ("Debit cards are not accepted for the deposit.", ["debit cards", "deposit"]),
        ("Check the cards, they are old.", ["cards"]),
        ("Children under 12 come along.", ["children"]),
        ("Discuss with the vet.", ["vet"]),
        ("Set the bill to PAID at 15:00:00 EST.", ["bill"]),
        ("Send an MMS.", ["MMS"]),
        ("Closed at 15:00:00 each day for pets.", ["pets"]),
        ("The parcel went missing.", ["parcel"]),
    ],
)
def test_names_are_found_without_verbs_code_and_describing_words(text: str, names: list[str]) -> None:
    assert list(names_in(text)) == names


def test_a_condition_that_is_met_makes_the_clause_apply_and_a_question_does_not() -> None:
    book, clauses = book_of(
        "If the customer is a minor, hand over.", "Only help if the customer is a member.", "Check the date."
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


@pytest.mark.parametrize(
    ("rule", "never", "asked"),
    [
        ("Only the sender may cancel a crate.", "the sender", "crate"),
        ("The sender and the recipient both may ask where a crate is.", "the sender", "recipient|crate"),
        ("Discounts above 15% need approval by a sales manager.", "manager", "discounts|approval"),
        ("Tell the admin what a crate costs.", "the admin", "crate"),
        ("Meter readings must be entered within 10 days.", "10 days by now", "meter readings"),
        ("Refunds must stay within 50 dollars.", "$^", "refunds"),
        ("Credit cards can only be used once.", "$^", "credit cards"),
        ("Confirm that the customer id is right for the crate.", "customer id", ""),
        ("Ask about allergies of the pet first.", "give you|send", "allergies"),
        ("Noise complaints: call the porter of the hotel.", "the hotel|porter", "noise complaints"),
    ],
)
def test_a_customer_asks_about_things_and_not_about_people_or_fields(rule: str, never: str, asked: str) -> None:
    book, (clause,) = book_of(rule)
    said = {book.need(clause, s, s).text for s in range(12)}
    assert not [t for t in said if re.search(never, t, re.I)]
    assert [t for t in said if re.search(asked, t, re.I)]


def test_a_question_of_a_theme_names_what_the_rule_is_about_wherever_the_rule_names_anything() -> None:
    book, (clause,) = book_of("Library fines must be paid within 30 days.")
    assert all("library fines" in book.need(clause, s, s).text for s in range(12))


@pytest.mark.parametrize(
    "rule", ["If the next class is available, upgrade the guest.", "If the same room is free, offer it."]
)
def test_what_the_house_has_is_not_the_customers(rule: str) -> None:
    book, (clause,) = book_of(rule)
    assert not [t for s in range(8) if (t := book.need(clause, s, s).text).startswith("My ")]


def test_a_prohibition_that_points_back_is_not_asked_for() -> None:
    book, (clause,) = book_of("Tolls are set by the state; do not waive or estimate them.")
    assert not [t for s in range(8) if re.search(r"waive|estimate", t := book.need(clause, s, s).text)]


def test_no_theme_takes_for_granted_what_a_card_has_no_fact_for() -> None:
    claims = re.compile(
        r"(?:it's been|i can't make it|i was charged|my (?:delivery|service|contract) |it (?:all )?(?:worked|got)|there isn't|"
        r"something (?:seems|doesn't)|i've (?:already|tried|thrown|paid))",
        re.I,
    )
    said = [s for t in load_words("themes_en").values() for key in ("says", "asks") for s in t.get(key, ())]
    assert not [s for s in said if claims.match(s)]


def test_a_condition_asks_on_about_something_else_than_itself() -> None:
    book, (clause,) = book_of("If the guest needs research help, look for a librarian.")
    assert book.need(clause, 0).text.count("research help") == 1
