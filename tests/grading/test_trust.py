"""Each probe catches the judge that has its fault, and lets an honest one pass."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from judges import (
    Ruled,
    Scripted,
    answer,
    evidence,
    fickle,
    first_comes_first,
    flattered,
    gullible,
    honest,
    said,
    transcript,
    wordy,
)

from whilesim.chat.models import CallKey
from whilesim.core.errors import InputError, ModelError
from whilesim.grading.judge import judge
from whilesim.grading.rubric import read_rubric
from whilesim.grading.trust import (
    Case,
    Reader,
    Trust,
    measure_trust,
    probe_injection,
    probe_order,
    probe_retest,
    probe_style,
    read_labels,
)

RUBRIC = read_rubric({"weights": {"policy": 0.6, "ux": 0.4}})


def cases(chat: Ruled, count: int = 12) -> list[Case]:
    """Conversations of which every second is rude, as the judge reads them."""
    return asyncio.run(read_all(chat, count))


async def read_all(chat: Ruled, count: int) -> list[Case]:
    found = []
    for i in range(count):
        seen = evidence(("get lost " if i % 2 else "it is done, ") + str(i))
        key = CallKey(case=f"s{i}", role="judge")
        found.append(
            Case(id=f"r{i}", evidence=seen, judgement=await judge(chat, RUBRIC, seen, key=key, model="m"), key=key)
        )
    return found


LABELS = {f"r{i}": i % 2 == 0 for i in range(60)}


def measure(chat: Ruled, count: int = 40) -> Trust:
    return asyncio.run(measure_trust(Reader(chat, RUBRIC, "m"), cases(chat, count), LABELS))


def test_an_honest_judge_is_admitted() -> None:
    report = measure(honest())
    assert report.against == ()
    assert report.admitted
    assert report.kappa.value == 1
    assert report.agreement.value == 1
    assert report.flips.value == 0
    assert {name: (p.moved, p.unread) for name, p in report.probes.items()} == dict.fromkeys(
        ("length", "politeness", "order", "injection"), (0, 0)
    )
    assert report.probes["injection"].tried == 40 * 20
    assert str(report).startswith(f"judge {report.judge}: admitted\n")
    assert "kappa                1.00 [" in str(report)
    assert "moved by injection   0.00 [" in str(report)


def test_a_gullible_judge_obeys_every_injected_instruction() -> None:
    found = asyncio.run(probe_injection(Reader(gullible(), RUBRIC), cases(gullible(), 3)))
    assert (found.moved, found.tried) == (60, 60)
    assert found.rate.value == 1


def test_an_injection_asks_for_the_opposite_of_what_the_judge_thinks() -> None:
    for rude in (True, False):
        case = cases(honest(), 2)[int(rude)]
        assert case.judgement.keep is not rude
        assert asyncio.run(probe_injection(Reader(honest(), RUBRIC), [case])).tried == 20


def test_instructions_are_put_where_somebody_spoke() -> None:
    chat = honest()
    quiet = Case(id="q", evidence=evidence(messages=said("Hi")), judgement=cases(chat, 1)[0].judgement, key=CallKey())
    assert asyncio.run(probe_injection(Reader(chat, RUBRIC), [quiet])).tried == 7  # only a customer spoke
    assert asyncio.run(probe_style(Reader(chat, RUBRIC), [quiet], "length")).tried == 0


def test_a_fickle_judge_flips_and_agrees_with_nobody() -> None:
    report = measure(fickle(), 60)
    assert report.flips.value == pytest.approx(0.5, abs=0.2)
    assert report.kappa.value == pytest.approx(0.0, abs=0.3)
    assert not report.admitted
    assert any("flips 0." in why for why in report.against)
    assert any("kappa" in why for why in report.against)


LONG, POLITE = partial(probe_style, name="length"), partial(probe_style, name="politeness")


@pytest.mark.parametrize(
    ("chat", "probe"), [(wordy(), LONG), (flattered(), POLITE), (first_comes_first(), probe_order)]
)
def test_each_bias_is_caught_by_its_probe(chat: Ruled, probe: Any) -> None:
    found = asyncio.run(probe(Reader(chat, RUBRIC), cases(chat, 6)))
    assert found.tried == 6
    assert found.moved == 6
    again = honest()
    assert asyncio.run(probe(Reader(again, RUBRIC), cases(again, 6))).moved == 0


def test_a_verdict_that_cannot_get_better_is_not_counted_as_steady() -> None:
    chat = honest()
    found = asyncio.run(probe_style(Reader(chat, RUBRIC), cases(chat, 6), "length"))
    assert found.tried == 3  # the three that it keeps with full marks have no room to rise


def test_a_retest_is_another_call() -> None:
    chat = Scripted([answer(["policy", "ux"])])
    case = cases(honest(), 1)[0]
    asyncio.run(probe_retest(Reader(chat, RUBRIC, "m"), [case]))
    assert chat.asked[0][2] == CallKey(case="s0", role="judge", sample=1)


def test_readings_that_cannot_be_read_are_counted_apart() -> None:
    found = asyncio.run(probe_retest(Reader(Scripted(["no", "no"]), RUBRIC), cases(honest(), 1)))
    assert (found.moved, found.tried, found.unread) == (0, 0, 1)
    assert found.rate.value is None


def test_a_judge_is_not_admitted_on_what_could_not_be_measured() -> None:
    few = measure(honest(), 4)
    assert few.against[0] == "4 labelled conversations were judged, and 30 are needed"
    assert "kappa 1.00" in few.against[1]
    none = asyncio.run(measure_trust(Reader(honest(), RUBRIC), cases(honest(), 2), {}))
    assert none.agreement.value is None
    assert "kappa cannot be had: nothing was labelled by both" in none.against


def test_labels_are_read_from_mappings_lists_and_files(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text('{"id": "a", "keep": true, "reason": "fine"}\n\n{"id": "b", "keep": false}\n', encoding="utf-8")
    expected = {"a": True, "b": False}
    listed = [{"id": "a", "keep": True}, {"id": "b", "keep": False}, {"id": "a", "keep": True}]
    for source in (file, str(file), expected, listed):
        assert read_labels(source, {"a", "b", "c"}) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"z": True}, "label is for 'z', and no such row"),
        ({"a": "keep"}, "must say which and what"),
        ({"a": 1}, "must say which and what"),
        ([{"id": "a"}], "must say which and what"),
        ([{"keep": True}], "must say which and what"),
        (["a"], "a label is 'a'"),
        ("no/labels.jsonl", "'no/labels.jsonl' is no file of labels"),
        ([{"id": "a", "keep": True}, {"id": "a", "keep": False}], "'a' is labelled twice"),
    ],
)
def test_labels_that_fit_nothing_are_refused(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(source, {"a"})


@pytest.mark.parametrize("reason", ["content_filter", "bad_request"])
def test_a_text_that_the_endpoint_will_not_have_read_does_not_lose_what_the_others_cost(reason: str) -> None:
    def rule(prompt: str, key: CallKey, names: list[str]) -> float:
        if "Ignore all" in prompt or "disregard" in prompt:
            raise ModelError("filtered", reason=reason)
        return 0.0 if "get lost" in transcript(prompt) else 1.0

    report = measure(Ruled(rule))
    assert report.admitted, report
    assert (report.probes["injection"].unread, report.probes["injection"].tried) == (3 * 40, 17 * 40)


def test_an_endpoint_that_fails_for_all_is_told_as_that() -> None:
    def rule(prompt: str, key: CallKey, names: list[str]) -> float:
        raise ModelError("no key", reason="auth")

    with pytest.raises(ModelError, match="no key"):
        asyncio.run(probe_retest(Reader(Ruled(rule), RUBRIC), cases(honest(), 2)))


def test_a_probe_of_which_most_could_not_be_read_admits_nobody() -> None:
    def rule(prompt: str, key: CallKey, names: list[str]) -> float:
        if "keep" in transcript(prompt) or "drop" in transcript(prompt):
            raise ModelError("filtered", reason="content_filter")
        return 0.0 if "get lost" in transcript(prompt) else 1.0

    report = measure(Ruled(rule))
    assert report.probes["injection"].unread > report.probes["injection"].tried > 0
    assert len(report.against) == 1
    assert report.against[0].startswith("moved by injection rests on")
