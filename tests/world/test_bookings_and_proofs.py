"""What is booked lies mostly ahead, who asks is proved by what the record says, and a sent code is no record's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from world_sets import tool

from whilesim.cards.cards import known_facts
from whilesim.core.jsontext import loads
from whilesim.situations.tools import Tool
from whilesim.world.fitting import allows
from whilesim.world.kinds import happened, partners
from whilesim.world.mock import MockWorld

TEXT = {"type": "string"}
DAY = {"type": "string", "format": "date"}
CODE = {"type": "string", "pattern": r"^\d{6}$"}


def places(first: str, last: str, *, ends: str = "cancel", nested: bool = False) -> list[Tool]:
    """Return the tools of a yard whose berths are booked, and called off or put off."""
    span = {first: DAY, last: DAY}
    given: dict[str, Any] = {"term": {"type": "object", "properties": span, "required": [*span]}} if nested else span
    return [
        tool("get_skipper", skipper_id="string", client_id="string"),
        tool("book_berth", "Book a berth.", "write", client_id="string", **given),
        tool("get_berth", berth_id="string"),
        tool(f"{ends}_berth", "Call a berth off.", "write", berth_id="string"),
    ]


def berths(tools: list[Tool], name: str = "get_berth") -> list[dict[str, Any]]:
    found = []
    for seed in range(25):
        world = MockWorld(tools, None, {"tool": name}, seed)
        found += [r.get("term", r) for r in world.records["berth"].values()]
    return found


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ends", ["first_day last_day", "from until", "start_date end_date", "check_in check_out"])
def test_what_is_booked_and_can_be_called_off_lies_mostly_ahead_and_some_has_begun(ends: str, nested: bool) -> None:
    first, last = ends.split()
    found = berths(places(first, last, nested=nested))
    ahead = sum(r[first] > "2026-03-02" for r in found)
    assert all(r[first] < r[last] for r in found)
    assert 0.55 * len(found) < ahead < 0.95 * len(found)


def test_what_cannot_be_called_off_and_what_is_not_booked_may_have_begun() -> None:
    kept = berths(places("start_date", "until", ends="inspect"))
    assert sum(r["start_date"] > "2026-03-02" for r in kept) < len(kept) / 4
    ended = [replace(t, name=t.name.replace("book", "file")) for t in places("start_date", "until")]
    assert sum(r["start_date"] > "2026-03-02" for r in berths(ended)) < len(kept) / 4


@pytest.mark.parametrize(
    ("name", "done"),
    [("last_day", False), ("last_working_day", False), ("last_date", False), ("last_login", True), ("last_payment_date", True), ("spent_on", True), ("bought_at", True), ("date_made", True), ("left_on", True), ("first_day", False)],
)  # fmt: skip
def test_the_last_day_is_no_last_login(name: str, done: bool) -> None:
    assert happened(name) is done


def test_first_and_last_are_the_ends_of_one_thing_and_asked_for_in_order() -> None:
    assert partners(("first_day", "last_day")) == (("first_day", "last_day"),)
    for seed in range(12):
        asked = MockWorld(places("first_day", "last_day"), None, {"tool": "book_berth"}, seed).focus.arguments
        assert "2026-03-02" < asked["first_day"] < asked["last_day"]


PROOFS = {
    "date_of_birth": DAY, "pin": {"type": "string", "pattern": r"^\d{4}$"}, "postcode": TEXT,
}  # fmt: skip


def desk(verb: str, *, one_time: str = "one_time_code", **proof: Any) -> list[Tool]:
    return [
        tool(f"{verb}_member", member_id="string", **proof),
        tool("get_member", member_id="string"),
        tool("get_loan", loan_id="string", member_id="string"),
        tool("renew_loan", "Renew a loan.", "write", loan_id="string"),
        tool("send_code", "Send a code to the member's phone.", "write", member_id="string"),
        tool(
            "update_account",
            "Change the account.",
            "write",
            member_id="string",
            account_holder=TEXT,
            **{one_time: CODE},
        ),
    ]


@pytest.mark.parametrize("verb", ["verify", "authenticate", "check"])
@pytest.mark.parametrize("name", [*PROOFS])
def test_what_an_identity_reader_takes_is_known_on_every_card_and_compared(name: str, verb: str) -> None:
    if verb == "check" and name == "postcode":  # may be the question itself
        return
    tools = desk(verb, **{name: PROOFS[name]})
    for about in (f"{verb}_member", "renew_loan", "get_loan", "update_account"):
        world = MockWorld(tools, None, {"tool": about}, 3)
        member = world.focus.facts.get("member id") or world.focus.arguments["member_id"]
        truth = world.records["member"][member][name]
        assert str(truth) in known_facts(world.focus).values()
        call = {"member_id": member, name: truth}
        assert loads(world.call(f"{verb}_member", call))["member_id"] == member
        wrong = {**call, name: "1901-01-01" if "birth" in name else "0000"}
        assert member not in world.call(f"{verb}_member", wrong).replace(f"for member {member}", "")


def test_a_record_that_is_given_is_compared_as_well() -> None:
    from whilesim.world.spec import WorldSpec

    spec = WorldSpec(records={"member": [{"member_id": "M1", "date_of_birth": "1988-04-12"}, {"member_id": "M2"}]})
    world = MockWorld(desk("verify", date_of_birth=DAY), None, {"tool": "get_member"}, 1, spec=spec)
    assert "1988" not in world.call("verify_member", {"member_id": "M1", "date_of_birth": "1977-01-01"})
    assert "1988" in world.call("verify_member", {"member_id": "M1", "date_of_birth": "1988-04-12"})
    assert loads(world.call("verify_member", {"member_id": "M2", "date_of_birth": "1977-01-01"}))["member_id"] == "M2"


@pytest.mark.parametrize("name", ["one_time_code", "otp", "verification_code", "resetCode", "sms_code"])
def test_a_code_that_is_sent_is_on_no_record(name: str) -> None:
    world = MockWorld(desk("get", one_time=name), None, {"tool": "update_account"}, 2)
    told = dict(world.focus.arguments)
    assert not any(name in member for member in world.records["member"].values())
    assert name not in loads(world.call("update_account", told))
    assert not any(fact.startswith("new ") for fact, value in world.focus.facts.items() if value == told[name])


def test_who_holds_an_account_is_the_customer() -> None:
    bank = {"type": "object", "properties": {"account_holder": TEXT, "iban": {"type": "string", "pattern": r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$"}, "country": {"type": "string", "enum": ["IE", "US", "NL"]}}, "required": ["account_holder", "iban", "country"]}  # fmt: skip
    tools = [
        tool("get_member", member_id="string"),
        tool("update_bank", "Change the bank.", "write", member_id="string", bank=bank),
        tool("report_theft", "Report a theft.", "write", member_id="string", police_reference="string"),
    ]
    for seed in range(5):
        world = MockWorld(tools, None, {"tool": "update_bank"}, seed)
        given = world.focus.arguments["bank"]
        number = given["iban"]
        assert given["account_holder"] == world.focus.identity["name"]
        assert int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1
        assert number[:2] == "GB"
        assert allows(bank, given)
        theft = MockWorld(tools, None, {"tool": "report_theft"}, seed).focus.arguments
        assert any(c.isdigit() for c in theft["police_reference"])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("verify_eligibility", {"service_type": "dental"}),
        ("check_coverage", {"zip_code": "10115"}),
        ("get_port_status", {"phone_number": "555-010-9999"}),
        ("get_order_history", {"email": "other@example.com"}),
    ],
)
def test_what_is_asked_about_is_no_proof_of_who_asks(name: str, call: dict[str, str]) -> None:
    tools = [
        tool(name, member_id="string", **dict.fromkeys(call, TEXT)),
        replace(
            tool("get_member", member_id="string"),
            returns={"type": "object", "properties": {"name": TEXT, "zip_code": TEXT}},
        ),
    ]
    world = MockWorld(tools, None, {"tool": "get_member"}, 3)
    reply = loads(world.call(name, {"member_id": world.focus.arguments["member_id"], **call}))
    assert "error" not in reply


@pytest.mark.parametrize("said", ["{m}/{d}/{y}", "{d}.{m}.{y}", "{y}-{m}-{d}T00:00:00"])
def test_a_birth_date_is_right_in_any_spelling(said: str) -> None:
    world = MockWorld(desk("verify", date_of_birth=DAY), None, {"tool": "renew_loan"}, 3)
    member, record = next(iter(world.records["member"].items()))
    year, month, day = record["date_of_birth"].split("-")
    call = {"member_id": member, "date_of_birth": said.format(y=year, m=month, d=day)}
    assert loads(world.call("verify_member", call))["member_id"] == member


def test_a_number_that_looks_like_a_date_is_none() -> None:
    key = {"type": "string", "description": "The booking, e.g. 2024-10-1234."}
    tools = [
        replace(tool("get_booking", booking_id=key), returns={"type": "object", "properties": {"start_date": DAY}}),
        tool("cancel_booking", "Cancel a booking.", "write", booking_id=key),
        tool("book_table", "Book a table.", "write", start_date=DAY),
    ]
    for seed in range(20):
        MockWorld(tools, None, {"tool": "get_booking"}, seed)
