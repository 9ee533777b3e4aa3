"""Policies: what becomes a clause, what stays out, and where each stands in the source."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import whilesim
from whilesim.core.errors import InputError
from whilesim.situations.policy import Policy, name_tools, parse_policy

HERE = Path(__file__).parent
FILES = ("policy_cases.yaml", "policy_blind.yaml")
CASES = [case for name in FILES for case in yaml.safe_load((HERE / name).read_text(encoding="utf-8"))]
DEMO = (Path(whilesim.__file__).parent / "demo" / "policy.md").read_text(encoding="utf-8")
TEXTS = [DEMO, *(case["text"] for case in CASES)]


def texts(policy: Policy) -> list[str]:
    return [c.text for c in policy.clauses]


def only(text: str) -> str:
    (clause,) = parse_policy(text).clauses
    return clause.text


def plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.casefold()).strip()


def test_the_bundled_policy_has_sixteen_clauses_and_no_facts(demo_policy):
    policy = parse_policy(demo_policy)
    assert len(policy.clauses) == 16
    assert [c.id for c in policy.clauses] == [f"c{n:02d}" for n in range(1, 17)]
    assert [c.kind for c in policy.clauses].count("handoff") == 3
    assert not any("customer ID" in c.text and "Identify" not in c.text for c in policy.clauses)
    assert policy.clauses[-1].section == "Lumo Mobile: how we help customers > When a person takes over"


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_a_reader_finds_each_rule_in_a_clause_of_its_own(case):
    policy = parse_policy(case["text"])
    taken = set()
    for rule in case["rules"]:
        hit = next((c for c in policy.clauses if rule["has"] in c.text and c.id not in taken), None)
        assert hit is not None, (rule["has"], texts(policy))
        assert hit.kind in ([rule["kind"]] if isinstance(rule["kind"], str) else rule["kind"]), hit
        taken.add(hit.id)
    for text in case["not_rules"]:
        sources = [plain(case["text"][slice(*c.span)]) for c in policy.clauses]
        assert not any(plain(text) in source for source in sources), text
    for found, name in ((policy.clauses, "clauses"), ([c for c in policy.clauses if c.kind == "handoff"], "handoffs")):
        low, high = case.get(name, (0, 999))
        assert low <= len(found) <= high, (name, texts(policy))


@pytest.mark.parametrize("join", [" ", "\n\n", "\n- "], ids=["prose", "lines", "bullets"])
@pytest.mark.parametrize(
    "facts",
    [
        "Our company has offices in Lisbon.|Customers love our summer menu.|The app was redesigned last spring.|"
        "Breakfast is served on the terrace.|The system stores each order with its status.|Each flat has a balcony.|"
        "Members often ask about the pool.|Feedback is collected by the quality team.|Support is a team of five people.",
        "La tienda tiene dos plantas.|Los clientes valoran la rapidez.|La aplicación muestra el estado del pedido.",
        "Unser Lager liegt am Stadtrand.|Der Laden wurde im Frühjahr umgebaut.|Die App zeigt den Status jeder Bestellung.",
        "A loja fica no centro.|Os clientes gostam do nosso café.|O hotel foi renovado no ano passado.",
        "本店位于人民路。|应用程序显示订单状态。|客户很喜欢我们的咖啡。|每个房间都有阳台。",
        "スタッフは五人です。|アプリには注文の状況が表示されます。|お客様に人気の商品は紅茶です。|窓から海が見えます。",
        "يقع الفندق قرب البحر.|يعرض التطبيق حالة الطلب.|يحب العملاء قهوتنا.",
    ],
    ids=["en", "es", "de", "pt", "zh", "ja", "ar"],
)
def test_facts_are_no_clauses(facts, join):
    assert texts(parse_policy((join + join.join(facts.split("|"))).strip())) == []


def test_an_amount_named_in_the_rule_before_goes_along_and_one_of_its_own_does_not():
    text = "- Refunds up to $200 are paid at once.\n- Above this amount ask the duty manager.\n"
    assert (
        texts(parse_policy(text))[1] == "Above this amount ask the duty manager. (Refunds up to $200 are paid at once.)"
    )
    text = "- Pay refunds within 5 days.\n- Grant up to $30 yourself; above that amount ask first.\n"
    assert texts(parse_policy(text))[1].endswith("above that amount ask first.")


def test_a_dialogue_is_dropped_wherever_it_stands_and_questions_with_answers_stay():
    spoken = "Agent\nYou must wait.\n\nCustomer\nMust I?\n\nAgent (Ada)\nNever mind, you must not.\n"
    assert texts(parse_policy(f"Never open the crate.\n\n{spoken}")) == ["Never open the crate."]
    asked = "Q: Can a guest pay in cash?\nA: Never accept cash.\n\nQ: Can a guest smoke?\nA: Never allow it.\n"
    assert len(parse_policy(asked).clauses) == 2


def test_a_bullet_with_a_picture_behind_it_keeps_its_polarity():
    text = "- 🔒 Verify the address\n- ❌ Share passwords\n- ✅ Thank the caller\n1. 📞 Call back within an hour\n"
    policy = parse_policy("# Rules\n\n" + text)
    assert [(c.kind, c.text) for c in policy.clauses] == [
        ("must", "Verify the address"),
        ("must_not", "Share passwords"),
        ("must", "Thank the caller"),
        ("must", "Call back within an hour"),
    ]


def test_two_columns_of_dos_and_donts_are_rules_cell_by_cell():
    text = "| Do | Don't |\n|---|---|\n| Quote the price list | Promise a date |\n"
    policy = parse_policy(text)
    assert [(c.kind, c.text) for c in policy.clauses] == [
        ("must", "Do: Quote the price list"),
        ("must_not", "Don't: Promise a date"),
    ]
    assert text[slice(*policy.clauses[1].span)] == "Promise a date"


@pytest.mark.parametrize("below", ["\n\n- {}\n- {}", "\n- {}\n- {}", "\n\na) {}\nb) {}", "\n\n{}\n{}"])
@pytest.mark.parametrize("number", ["{}.", "{})", "Section {}:"])
def test_a_numbered_heading_is_one_whatever_stands_below_it(number, below):
    rules = below.format("Surgery is never booked by the desk.", "Never book a visit twice.")
    named = ["Knowing the owner", "When a person takes over", "Bills"]
    heads = [f"{number.format(n)} {name}" for n, name in enumerate(named, start=1)]
    text = f"Desk\n\n{heads[0]}\n\nLook the owner up first.\n\n{heads[1]}{rules}\n\n{heads[2]}\n\nNever argue."
    sections = [c.section for c in parse_policy(text).clauses]
    assert sections == [f"Desk > {name}" for name in (named[0], named[1], named[1], named[2])]


def test_a_numbered_heading_above_bullets_needs_none_before_it():
    text = "Desk\n\n1. Visits\n\n- Surgery is never booked by the desk.\n\n2. Bills\n\n- Never argue.\n"
    assert [c.section for c in parse_policy(text).clauses] == ["Desk > Visits", "Desk > Bills"]
    steps = "Steps:\n\n1. Check the owner's name\n\n- by phone\n- by e-mail\n\n2. Open the record\n"
    assert texts(parse_policy(steps))[1] == "Check the owner's name: by phone"


RULES = "Only the employee may ask about their own record. After two failed attempts, stop and hand over to the duty desk. Members pay 10 euros for a second card."


@pytest.mark.parametrize(
    ("heading", "meta"),
    [(h, False) for h in ("About refunds", "Scope of refunds", "Roles and limits", "Background checks", "Identity")]
    + [(h, False) for h in ("2. Who you are talking to", "Purpose of the visit", "Goal bonuses", "角色与限制")]
    + [
        (h, True)
        for h in ("About", "Scope of this policy", "5. About the desk", "🎯 Role & Objective", "Your identity")
    ]
    + [
        (h, True)
        for h in ("Who you are", "Version: 2024-01", "About our team and its goals", "Article 1 – Definitions")
    ],
)
def test_only_a_heading_of_the_agent_or_the_document_alone_takes_rules_for_facts(heading, meta):
    policy = parse_policy(f"# Policy\n\n## {heading}\n\n{RULES}\n\nNever name a salary.")
    assert len(policy.clauses) == (1 if meta else 4)


@pytest.mark.parametrize(
    ("lead", "facts"),
    [
        ("Every room has one of three tiers, shown on the booking:", False),
        ("Each plan includes 2 levels:", False),
        ("Jede Buchung hat eine von drei Stufen:", False),
        ("Every room has a tier:", True),
        ("Each profile contains:", True),
    ],
)
def test_a_choice_of_variants_is_no_list_of_attributes(lead, facts):
    text = (
        "# P\n\n{}\n- Flexible: full refund up to 24 hours before arrival\n- Strict: 50% up to 30 days before arrival"
    )
    assert len(parse_policy(text.format(lead)).clauses) == (0 if facts else 2)


def test_an_exception_stays_with_its_rule():
    text = "Returns are accepted within 30 days. Except for food, which cannot be returned.\n\nNever refund cash."
    assert texts(parse_policy(text)) == [
        "Returns are accepted within 30 days. Except for food, which cannot be returned.",
        "Never refund cash.",
    ]


def test_a_fragment_carries_its_lead_in_and_an_open_one_its_consequence():
    policy = parse_policy("If the caller mentions:\n- a lawyer\n- the press\n\nEscalate to the duty manager.\n")
    assert [c.kind for c in policy.clauses] == ["handoff", "handoff"]
    assert texts(policy)[0] == "If the caller mentions: a lawyer → Escalate to the duty manager."


def test_when_and_action_are_one_clause_and_the_example_is_none():
    text = '### No-show\n- **When:** a guest does not arrive\n- **Action:** Charge one night.\n- **Example:** "Hi!"\n'
    assert only(text) == "No-show: When: a guest does not arrive; Action: Charge one night"


def test_a_step_under_a_heading_says_what_it_is_a_step_of():
    text = "# Faults\n\n## No dial tone\n\n- Ask whether the cable is plugged in.\n"
    assert only(text) == "No dial tone: Ask whether the cable is plugged in."


def test_equal_clauses_are_merged_and_the_note_says_so():
    policy = parse_policy("- Never share a password.\n- Be polite at all times.\n- Never share a password!\n")
    assert len(policy.clauses) == 2
    assert any("twice and is one clause" in note for note in policy.notes)


def test_near_clauses_with_other_numbers_are_not_merged():
    policy = parse_policy("- Refund within 30 days.\n- Refund within 60 days.\n")
    assert len(policy.clauses) == 2


def test_a_text_without_rules_gives_no_clause_and_a_note():
    policy = parse_policy("You are the friendly assistant of a bakery.")
    assert policy.clauses == ()
    assert any("no rule was found" in note for note in policy.notes)


@pytest.mark.parametrize("empty", ["", "  \n\t "])
def test_an_empty_policy_is_refused(empty):
    with pytest.raises(InputError, match="the policy is empty"):
        parse_policy(empty)


@pytest.mark.parametrize("name", ["policy.md", "docs/agent-policy.txt", "prompt.yaml"])
def test_the_name_of_a_file_is_not_taken_for_its_text(name):
    with pytest.raises(InputError, match=rf"the policy is '{name}', the name of a file. Type its text: Path"):
        parse_policy(name)


def test_a_prompt_inside_json_is_read_and_each_clause_keeps_its_place():
    source = '{"name": "x", "text": "# Desk\\n- Never share a \\"PIN\\" with callers.\\n- Ask for the name.\\n\\nBye."}'
    clauses = parse_policy(source).clauses
    assert [c.kind for c in clauses] == ["must_not", "must"]
    assert source[slice(*clauses[0].span)] == 'Never share a \\"PIN\\" with callers.'


TAGS = """<bot>
<policies>
<policy name="age">Nobody below 12 paddles alone.</policy>
<policy name="storm" level="2">Close the jetty in a storm.</policy>
</policies>
<not_allowed>Lending paddles to other firms</not_allowed>
<case>
<condition>A boat comes back damaged</condition>
<action>Take photos of it.</action>
</case>
<example>Customer: May I bring my dog? Agent: You must keep it on a lead.</example>
<style>
Answer in English
</style>
</bot>
"""
YAML = """rules:
  - Check the boarding card first.
  - id: liquids
    text: Never open a sealed bag.
escalation:
  when:
    - a traveller faints
no_go:
  topics: |
    Do not discuss salaries.
persona: |
  You are Ana of the airport shop.
"""
WIKI = """h2. Loans
{note}Books on loan are never mailed.{note}
# Ask for the library card.
# Renew a loan by telephone.
## Stamp the slip.
||Item||Fine per day||
|Film|1 euro|
{code}
return "must not be read"
{code}
{panel:title=Lost cards|borderStyle=dashed}
* Charge 5 euros.
{panel}
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (
            TAGS,
            """must_not | Nobody below 12 paddles alone.
            must | Close the jetty in a storm.
            must_not | not allowed: Lending paddles to other firms
            must | case: condition: A boat comes back damaged; action: Take photos of it
            must | style: Answer in English""",
        ),
        (
            YAML,
            """must | Check the boarding card first.
            must_not | Never open a sealed bag.
            handoff | when: a traveller faints
            must_not | Do not discuss salaries.""",
        ),
        (
            WIKI,
            """must_not | Books on loan are never mailed.
            must | Loans: Ask for the library card.
            must | Renew a loan by telephone.
            must | Renew a loan by telephone: Stamp the slip.
            condition | Loans: Item: Film; Fine per day: 1 euro
            must | Lost cards: Charge 5 euros.""",
        ),
        (
            "Q: What about phones?\nA: Check the serial number first. Never open one in the shop.\n",
            """must | What about phones?: Check the serial number first.
            must_not | What about phones?: Never open one in the shop.""",
        ),
        (
            "Template for the reply:\n\n```\nYou must come tomorrow.\n```\n\n- Feed cats twice a day.\n",
            "must | Feed cats twice a day.",
        ),
        (
            "# Refunds\n\n- Yearly passes: half back, but only in the first 60 days.\n  - Deduct the card fee.\n",
            """condition | Yearly passes: half back, but only in the first 60 days.
            must | Yearly passes: half back, but only in the first 60 days: Deduct the card fee.""",
        ),
        (
            "E.1 First call\n\nAsk for the place.\n\nE.2 What you can settle yourself\n\nPay claims of up to 90 euros.\n",
            """must | First call: Ask for the place.
            must | Pay claims of up to 90 euros.""",
        ),
    ],
    ids=["tags", "yaml", "wiki", "answer", "template", "limit", "letters"],
)
def test_rules_are_found_however_a_page_is_marked_up(text, rules):
    found = [f"{c.kind} | {c.text}" for c in parse_policy(text).clauses]
    assert found == [line.strip() for line in rules.splitlines()]


def test_what_is_no_text_is_refused():
    with pytest.raises(InputError, match="the policy is of type dict, and must be the text"):
        parse_policy({"policy": "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: You must read this\n---\n\n- Never share keys.\n",
        "<!-- You must not read this. -->\r\n- Never share keys.\r\n",
        "\ufeff- Never share keys.\n\n```python\nassert must_never_be_read\n```\n",
        "<p>Hello&nbsp;there</p><ul><li>Never share keys.</li></ul><p>Our office is blue.</p>",
        "import Note from './note'\n\n- Never share keys.\n",
        "{% if vip %}\n- Never share keys.\n{% endif %}\n",
        "```\n# Rules\n- Never share keys.\n```\n",
        "<examples>\nYou must read this.\n</examples>\n\n<rules>\nNever share keys.\n</rules>\n",
        "Hi <First Name>, <Last Name> of <Company>!\n\n- Never share keys.\n",
        "```\n```\n\n- Never share keys.\n",
        "```\nCustomer: must I?\nAgent: You must.\n```\n\n- Never share keys.\n",
    ],
)
def test_only_the_rule_is_read_and_its_span_is_exact(text):
    (clause,) = parse_policy(text).clauses
    assert clause.text == "Never share keys."
    assert text[slice(*clause.span)] == "Never share keys."


def test_placeholders_stay_in_a_rule_and_are_no_tools():
    (clause,) = parse_policy("- Refund at most {{max_amount}} dollars with `issue_refund`.").clauses
    assert "{{max_amount}}" in clause.text
    assert clause.tools == ("issue_refund",)


def test_tools_are_named_in_any_spelling():
    policy = parse_policy("- Never call getOrder twice.\n- Use the send invoice tool before you close the case.\n")
    named = name_tools(policy, ["getOrder", "send_invoice", "close"])
    assert [c.tools for c in named.clauses] == [("getOrder",), ("send_invoice",)]
    given = parse_policy(policy.text, tools=[SimpleNamespace(name="getOrder")])
    assert [c.tools for c in given.clauses] == [("getOrder",), ()]


def test_thirteen_hundred_rules_are_thirteen_hundred_clauses():
    lines = [f"- Never open drawer {n} before the bell has rung {n} times." for n in range(1300)]
    policy = parse_policy("# Rules\n\n" + "\n".join(lines))
    assert len(policy.clauses) == 1300
    assert policy.clauses[0].id == "c0001"


@given(
    st.sampled_from(TEXTS), st.integers(0, 3000), st.integers(1, 1500), st.sampled_from(["", "```\n", "<p>", "|", '"'])
)
@settings(max_examples=60, deadline=None)
def test_any_slice_of_a_document_can_be_read(text, start, size, noise):
    piece = text[start % len(text) :][:size] + noise + text[: start % 300]
    if not piece.strip():
        return
    for clause in parse_policy(piece).clauses:
        first, last = clause.span
        assert 0 <= first < last <= len(piece)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_read(text):
    if text.strip():
        parse_policy(f"{text}\n.")  # "0.md" alone is the name of a file, and is refused


@pytest.mark.corpus
def test_no_slice_of_a_real_document_breaks_the_reader(shared):
    texts = [f.read_text(encoding="utf-8") for f in sorted(shared.glob("*/*/policy.md"))]
    for number in range(150):
        text = texts[number % len(texts)]
        start = number * 7919 % len(text)
        piece = text[start : start + 40 + number * 31 % 900] + ["", "```\n", "<p>", "|", '"', "- ("][number % 6]
        if piece.strip():
            assert all(0 <= c.span[0] < c.span[1] <= len(piece) for c in parse_policy(piece).clauses)


@pytest.mark.corpus
def test_the_corpus_is_read_as_its_readers_expect(shared):
    inside = nots = out = 0
    folders = [f for f in sorted((shared / "corpus").iterdir()) if (f / "policy.md").is_file()]
    for folder in folders:
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        policy = parse_policy((folder / "policy.md").read_text(encoding="utf-8"))
        inside += expected["rule_count_min"] <= len(policy.clauses) <= expected["rule_count_max"]
        for text in expected["not_rules"]:
            nots += 1
            out += not any(plain(text) in plain(policy.text[slice(*c.span)]) for c in policy.clauses)
    assert inside == len(folders)
    assert out == nots


def test_a_table_whose_columns_stand_apart_by_spaces_is_read_row_by_row():
    text = (
        "WATER WORKS\n\n1. WHAT YOU MAY DECIDE\n\n1.1 Leaks are routed by the worth of the water:\n\n"
        "    Loss a day          Who decides      Queue\n    ------------------  ---------------  -------\n"
        "    up to EUR 200       Desk clerk       desk\n    over EUR 200        Field engineer   field\n\n"
        "1.2 Never close a leak yourself.\n"
    )
    clauses = parse_policy(text).clauses
    assert [(c.kind, c.text.rpartition("DECIDE: ")[2]) for c in clauses][-3:] == [
        ("condition", "Loss a day: up to EUR 200; Who decides: Desk clerk; Queue: desk"),
        ("condition", "Loss a day: over EUR 200; Who decides: Field engineer; Queue: field"),
        ("must_not", "Never close a leak yourself."),
    ]
    assert {c.section for c in clauses} == {"WATER WORKS > WHAT YOU MAY DECIDE"}  # its 'may' permits nothing


@pytest.mark.parametrize("colon", ["", ":"])
def test_what_follows_unless_is_forbidden_and_the_lead_in_is_no_rule(colon):
    clauses = parse_policy(
        f"- A berth can be extended unless{colon}\n  - the jetty is closed\n  - the boat is late\n"
    ).clauses
    assert [(c.kind, c.text) for c in clauses] == [
        ("must_not", "A berth can be extended unless: the jetty is closed"),
        ("must_not", "A berth can be extended unless: the boat is late"),
    ]


def test_a_thing_that_goes_to_the_next_person_is_no_hand_off():
    (clause,) = parse_policy("- A berth is kept for 3 opening days; afterwards it goes to the next person.\n").clauses
    assert clause.kind == "condition"


def test_a_row_whose_first_cell_is_empty_is_a_row_and_an_empty_column_stays() -> None:
    plans = "| Plan | Old | Fee |\n|---|---|---|\n| Basic | old | must pay $5 |\n|| new | must pay $10 |\n"
    assert any("$10" in c.text for c in parse_policy(plans).clauses)
    bare = plans.replace("| Plan | Old | Fee |", "| Plan || Fee |")
    assert any("Plan: Basic" in c.text and "Fee: must pay $5" in c.text for c in parse_policy(bare).clauses)


def test_a_rule_of_one_word_in_a_list_of_yaml_stays() -> None:
    prompt = "rules: |\n  Never share data.\n  Always verify.\nrefunds:\n  - name: basic\n  - allowed: never\nmore: |\n  Must ask first.\n"
    assert any("allowed: never" in c.text for c in parse_policy(prompt).clauses)


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("The request goes to the next manager.", "handoff"),
        ("A berth is kept for 3 days; afterwards it goes to the next person.", "condition"),
        ("There is no cover charge at our bars.", "condition"),
        ("Overpayments go back to the next finance period.", "condition"),
        ("There is no cover for lost keys.", "must_not"),
    ],
)
def test_who_is_next_and_what_is_covered_are_told_apart(rule: str, kind: str) -> None:
    assert [c.kind for c in parse_policy(f"- {rule}\n").clauses] == [kind]
