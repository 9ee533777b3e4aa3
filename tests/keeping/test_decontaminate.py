"""Decontaminate: what is planted is found by its layer, and what is common property is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whilesim.chat.messages import Message
from whilesim.core.errors import InputError
from whilesim.keeping.references import identifiers, read_items, tokens
from whilesim.keeping.simulation import Simulation

TASKS: list[dict[str, Any]] = [
    {
        "id": "t1",
        "instructions": {"reason_for_call": "You ordered a green kayak for your sister and it came with a broken paddle.",
                         "known_info": "You are Ada Quill. Your user id is ada_quill_4821."},
        "actions": [
            {"requestor": "assistant", "name": "get_order", "arguments": {"order_id": "#W7700123"}},
            {"requestor": "assistant", "name": "cancel_order", "arguments": {"order_id": "#W7700123"}},
        ],
    },
    {"id": "t2", "instructions": "You want to know why the parcel with the garden hose is two weeks late and who pays for it.",
     "actions": ["assistant:transfer_to_human({})"]},
]  # fmt: skip


def opened(make: Any, text: str, *rest: Message, card: str = "s001", **more: Any) -> Any:
    answer = rest or (Message(role="assistant", content="I will see to it."),)
    talk = (Message(role="system", content=make.policy), Message(role="user", content=text), *answer)
    return make.row(card=card, messages=talk, facts={}, **more)


def layers(report: Any) -> dict[str, list[str]]:
    return {row: [seen.layer for seen in evidence] for row, evidence in report.evidence.items()}


@pytest.fixture
def clean(make: Any) -> Any:
    return opened(make, "hello, could you look at my order please, it is W2210", card="s000")


def test_a_copied_text_is_found_whole_and_in_pieces(make: Any, clean: Any) -> None:
    whole = opened(make, "Hi. " + TASKS[0]["instructions"]["reason_for_call"], card="s001")
    piece = opened(make, "you ordered a green kayak for your sister and it came with nothing", card="s002")
    report = Simulation([clean, whole, piece]).decontaminate(TASKS, embedder="hashed")
    found = layers(report)
    assert found["s001/r0"][:3] == ["exact", "13-gram", "8-gram"]
    assert found["s002/r0"][0] == "8-gram" or found["s002/r0"][:2] == ["13-gram", "8-gram"]
    assert "s000/r0" not in found
    assert [row.id for row in report.clean] == ["s000/r0"]
    seen = report.evidence["s001/r0"][0]
    assert (seen.item, seen.items) == ("t1", 1)
    assert "green kayak" in seen.quote


def test_the_same_request_in_the_first_person_is_near(make: Any, clean: Any) -> None:
    mine = opened(make, "I ordered a green kayak for my sister and it came with a broken paddle", card="s001")
    report = Simulation([clean, mine]).decontaminate(TASKS, ngram=13, embedder="hashed")
    assert "embedding" in layers(report)["s001/r0"]
    (layer,) = [layer for layer in report.layers if layer.name == "embedding"]
    assert "by spelling only: no model is at hand" in layer.could


def test_a_record_of_the_benchmark_is_found_wherever_it_is_named(make: Any, clean: Any) -> None:
    said = opened(make, "my user id is ADA_QUILL_4821", card="s001")
    called = opened(make, "look", make.call("get_order", '{"order_id": "W7700123"}'),
                    Message(role="tool", content="{}", tool_call_id="call_1"),
                    Message(role="assistant", content="Yes."), card="s002")  # fmt: skip
    report = Simulation([clean, said, called]).decontaminate(TASKS, embedder="hashed")
    assert layers(report) == {"s001/r0": ["identifiers"], "s002/r0": ["identifiers"]}


def test_the_calls_that_a_task_wants_are_found_in_any_spelling_and_order(make: Any) -> None:
    tasks = [{"id": "a", "expected": [{"name": "cancel_order", "arguments": '{"order_id": "#W31", "note": null}'}]},
             {"id": "b", "actions": [{"name": "cancel_order", "arguments": {"order_id": "W8814", "n": 2.0}}]},
             {"id": "c", "actions": [{"name": "transfer_to_human", "arguments": {"summary": "they want a person and nothing else"}}]}]  # fmt: skip

    def calls(card: str, arguments: str, name: str = "cancel_order", **more: Any) -> Any:
        rest = (make.call(name, arguments), Message(role="tool", content="{}", tool_call_id="call_1"),
                Message(role="assistant", content="Done."))  # fmt: skip
        return opened(make, "please", *rest, card=card, **more)

    rows = [
        calls("s1", '{"n": 2, "order_id": "#w8814"}'),
        calls("s2", '{"order_id": "W8815", "n": 2}'),
        calls("s3", '{"n": 2, "order_id": "W8814"}', failed_calls=("call_1",)),
        calls("s4", "{}", name="transfer_to_human"),
    ]
    report = Simulation(rows).decontaminate(tasks, embedder="hashed")
    structure = [row for row, seen in report.evidence.items() if "structure" in {e.layer for e in seen}]
    assert structure == ["s1/r0"]
    assert report.evidence["s1/r0"][-1].item == "b"


def test_calls_that_name_no_record_are_evidence_only_together(make: Any) -> None:
    def toggled(card: str, *names: str) -> Any:
        from whilesim.chat.messages import CustomerCall

        row = opened(make, "it is dead", card=card)
        calls = [CustomerCall(after_message=1, name=name, arguments="{}", reply="on") for name in names]
        return row.model_copy(update={"customer_calls": calls})

    rows = [toggled("s1", "toggle_data"), toggled("s2", "reseat_card", "toggle_data", "reboot"),
            toggled("s3", "reseat_card", "toggle_data", "reboot", "toggle_wifi")]  # fmt: skip
    tasks = [{"id": "one", "actions": ["user:toggle_data({})"]},
             {"id": "two", "actions": ["user:toggle_wifi({})"]},
             {"id": "three", "actions": ["user:toggle_data({})", "user:reboot({})", "user:reseat_card({})"]}]  # fmt: skip
    report = Simulation(rows).decontaminate(tasks, embedder="hashed")
    assert layers(report) == {"s2/r0": ["structure"]}
    assert "1 sets of calls; 2 items expect none, or none that would tell" in str(report)


def test_what_policy_and_tools_say_is_no_evidence(make: Any) -> None:
    quoting = f"but {make.policy} so what now"
    rows = [opened(make, quoting, card="s1"), opened(make, "Look up an order. Cancel an order. Hand over.", card="s2")]
    tasks = [{"text": f"The agent should say that {make.policy} and refuse."}, {"text": "Look up an order."},
             {"messages": [{"role": "system", "content": "you ordered a green kayak for your sister and it broke"},
                           {"role": "user", "content": "please help me with my broken thing at once"}]}]  # fmt: skip
    same = [*rows, opened(make, "you ordered a green kayak for your sister and it broke", card="s3")]
    report = Simulation(same).decontaminate(tasks, embedder="hashed")
    assert {layer for seen in layers(report).values() for layer in seen} <= {"embedding"}


def test_a_short_text_is_evidence_only_where_a_customer_opens_with_it(make: Any) -> None:
    short = [{"text": "where on earth is it"}, {"messages": [{"role": "assistant", "content": "I will see to it."}]}]
    later = (Message(role="assistant", content="?"), Message(role="user", content="where on earth is it"))
    rows = [opened(make, "where on earth is it", card="s1"), opened(make, "hm", *later, card="s2")]
    found = layers(Simulation(rows).decontaminate(short, embedder="hashed"))
    assert found["s1/r0"][0] == "exact"
    assert "exact" not in found.get("s2/r0", [])


def test_what_the_agent_says_to_everybody_is_its_own(make: Any) -> None:
    stock = "Thank you for calling us today, is there anything else that I can do for you?"
    rows = [
        opened(make, f"order {i} please", Message(role="assistant", content=stock), card=f"s{i:03}") for i in range(12)
    ]
    tasks = [{"messages": [{"role": "user", "content": "hm"}, {"role": "assistant", "content": stock}]}]
    many = Simulation(rows).decontaminate(tasks, embedder="hashed")
    assert not {"exact", "8-gram"} & {layer for seen in layers(many).values() for layer in seen}
    few = Simulation(rows[:2]).decontaminate(tasks, embedder="hashed")
    assert all("8-gram" in seen for seen in layers(few).values())


def test_layers_that_cannot_run_say_why(make: Any, clean: Any) -> None:
    report = Simulation([clean]).decontaminate(["short", "too short"], embedder="hashed")
    assert not any(layer.ran for layer in report.layers)
    told = str(report)
    assert "0 of 1 rows share something with 2 items" in told
    for why in ("no text of 5 words or more", "no text of 13 words or more", "nothing that names a record",
                "no expected call that changes a record of these tools"):  # fmt: skip
        assert why in told
    assert len(report.clean) == 1


@pytest.mark.parametrize("form", ["jsonl", "json", "wrapped", "txt", "list", "sharegpt", "rows"])
def test_a_benchmark_may_have_any_form(make: Any, clean: Any, form: str, tmp_path: Path) -> None:
    text = TASKS[0]["instructions"]["reason_for_call"]
    row = opened(make, text, card="s001")
    against: Any = TASKS
    path = tmp_path / f"tasks.{ {'jsonl': 'jsonl', 'txt': 'txt'}.get(form, 'json') }"
    if form == "jsonl":
        path.write_text("\n".join(map(json.dumps, TASKS)) + "\n", encoding="utf-8")
        against = path
    elif form in ("json", "wrapped"):
        path.write_text(json.dumps({"n": 2, "tasks": TASKS} if form == "wrapped" else TASKS), encoding="utf-8")
        against = str(path)
    elif form == "txt":
        path.write_text(f"what is this\n{text}\n", encoding="utf-8")
        against = path
    elif form == "sharegpt":
        against = [{"conversations": [{"from": "system", "value": "x"}, {"from": "human", "value": text}]}]
    elif form == "rows":
        against = [row]
    report = Simulation([clean, row]).decontaminate(against, embedder="hashed")
    assert list(report.evidence) == ["s001/r0"]
    assert report.evidence["s001/r0"][0].layer == "exact"


def test_what_cannot_be_read_is_refused(clean: Any, tmp_path: Path) -> None:
    data = Simulation([clean])
    with pytest.raises(InputError, match=r"there is no file 'gone\.jsonl' to compare with"):
        data.decontaminate("gone.jsonl")
    with pytest.raises(InputError, match="holds nothing to compare with"):
        data.decontaminate([])
    with pytest.raises(InputError, match=r"ngram=3: fewer than 4 words"):
        data.decontaminate(TASKS, ngram=3)
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json' is not JSON"):
        data.decontaminate(tmp_path / "bad.json")
    (tmp_path / "torn.jsonl").write_text('{"a": "b"}\n{"a": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"torn\.jsonl, line 2: not JSON"):
        data.decontaminate(tmp_path / "torn.jsonl")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("order #W2378156 of emma_kim_9957", {"w2378156", "emma_kim_9957"}),
        ("call 555-123-2002 or (555) 123 2002", {"5551232002"}),
        ("booking EHGLP3, mail a.b@c.example", {"ehglp3", "a.b@c.example"}),
        ("on 2024-05-15 at 12:30:00, 15.05.2024, $1,299.50, 500mbps, 24hours, iPhone 15 Pro, 2.0 GB", set()),
        ("a well-known user of windows11", set()),
        ("flights HAT228 and hat033, form I-9 or B12, but line HAT2281", {"hat2281"}),
    ],
)
def test_identifiers_are_codes_numbers_and_addresses(text: str, names: set[str]) -> None:
    assert identifiers(text) == names


def test_scripts_without_spaces_have_words_too() -> None:
    assert tokens("注文を") == ("注", "文", "を")
    assert tokens("Don’t SHOUT") == ("don’t", "shout")


@pytest.mark.corpus
@pytest.mark.parametrize("domain", ["telecom", "retail", "airline"])
def test_tasks_of_the_benchmark_are_read(shared: Path, domain: str) -> None:
    items = read_items(shared / "tau2" / domain / "tasks_text.jsonl")
    assert all(item.texts for item in items)
    assert sum(bool(item.calls) for item in items) > len(items) / 2
    assert not any("Policy" in text for item in items for text in item.texts if text.startswith("#"))


def test_a_record_is_found_however_the_customer_types_it(make: Any) -> None:
    tasks = [{"text": "Booking EHGLP3"}, {"text": "555-123-2002"}]
    rows = [opened(make, "its ehglp3 ok", card="s1"), opened(make, "call (555) 123 2002", card="s2"),
            opened(make, "its ehglp4, 555-123-2003", card="s3")]  # fmt: skip
    assert layers(Simulation(rows).decontaminate(tasks, embedder="hashed")) == {
        "s1/r0": ["identifiers"],
        "s2/r0": ["identifiers"],
    }
