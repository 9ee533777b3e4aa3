"""What a tool does, as a customer asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from whilesim.cards.requests import deed, thing
from whilesim.situations.tools import Tool
from whilesim.world.mock import Focus


@pytest.mark.parametrize(
    ("name", "description", "kind", "subject", "asked"),
    [
        ("cancel_pending_order", "Cancel a pending order.", "order", "my order W1", "cancel my order W1"),
        ("modify_pending_order_items", "Modify items.", "order", "my order W1", "modify the items of my order W1"),
        ("modify_user_address", "Modify the address.", "user", "my account", "modify the address of my account"),
        ("send_certificate", "Send a certificate.", None, "", "send me a certificate"),
        ("send_certificate", "Send it.", "certificate", "my certificate", "send me a certificate"),
        ("list_for_sale", "List a ticket for sale.", "ticket", "my ticket T1", "list my ticket T1 for sale"),
        ("book_table", "Book a table.", "table", "my table", "book a table"),
        ("order_new_card", "Order.", "card", "my card C1", "order a new card for my card C1"),
        ("order_card", "Order.", "card", "my card C1", "order my card C1"),
        ("post_void", "Void a payment", "void", "my void", "void a payment"),
        ("take_deposit", "Charge a deposit to the card.", "owner", "my owner O1", "take the deposit for my owner O1"),
        ("resend_invoice", "E-mail an invoice again", "invoice", "my invoice I1", "resend my invoice I1"),
        ("frobnicate_line", "Frobnication of a line.", "line", "my line L1", "frobnicate my line L1"),
        ("compensation_status", "Money.", "line", "my line L1", "help me with my line L1"),
        ("mark_deceased", "Record that a pet has died.", "pet", "my pet P1", "mark my pet P1 as deceased"),
        ("newapi_for_url", "This is a subfunction.", "url", "my url u.example", "help me with my url u.example"),
        (
            "sync_ask_for_approval",
            "Asks the manager for a discount.",
            "sync",
            "my sync",
            "ask the manager for a discount",
        ),
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


@pytest.mark.parametrize(
    ("name", "description", "kind", "subject", "asked"),
    [
        ("get_bill", "Get a bill.", "bill", "my bill B1", "look up my bill B1"),
        ("get_recent_orders", "Get recent orders.", "order", "my order", "look up my recent orders"),
        ("get_bills_for_customer", "List bills.", "bill", "my bill", "look up my bills"),
        ("get_flight_status", "Status of a flight.", "flight", "the flight F1", "look up the status of the flight F1"),
        ("search_direct_flight", "Search for direct flights between two cities.", "flight", "the flight", "search for direct flights"),
        ("get_customer_by_phone", "Finds a customer.", "customer", "my account", "look up my account"),
        ("weather", "This tool retrieves the forecast for a city.", None, "my request", "look up the forecast for a city"),
        ("faq_lookup_tool", "Lookup frequently asked questions.", None, "my request", "look up the frequently asked questions"),
        ("query_docs", "", None, "my request", "look up docs"),
        ("find_bookings", "Find the bookings of a guest.", None, "my request", "find my bookings"),
    ],
)  # fmt: skip
def test_a_reading_tool_is_asked_for_in_english(
    name: str, description: str, kind: str | None, subject: str, asked: str
) -> None:
    tool = Tool(name=name, description=description, parameters={}, effect="read")
    assert deed(tool, Focus(tool=name, arguments={}, kind=kind, object=subject)) == asked


def test_a_sum_is_asked_for_with_its_numbers_and_a_handoff_as_a_person() -> None:
    focus = Focus(tool="calculate", arguments={}, facts={"expression": "3 + 7", "user id": "u_1"}, object="my request")
    compute = Tool(name="calculate", description="Calculate.", parameters={}, effect="compute")
    assert deed(compute, focus) == "work out 3 + 7"
    assert deed(Tool(name="x", description="", parameters={}, effect="handoff"), focus) == "put me through to a person"


@pytest.mark.parametrize(
    ("name", "description", "arguments", "effect", "kind", "subject", "asked"),
    [
        ("list_free_slots", "List free slots of a dentist on a day.", ("dentist_id", "date"), "read", "slot", "my slot", "tell me the free slots"),
        ("find_points", "Find pickup points near a zip code.", ("zip_code",), "read", None, "", "find the pickup points"),
        ("find_routes", "Find routes to a harbour.", ("day",), "read", None, "", "find the routes to a harbour"),
        ("find_booking", "Find a booking.", ("booking_id",), "read", "booking", "my booking B1", "find my booking B1"),
        ("find_order", "Find an order of tickets.", ("order_id",), "read", "order", "my order O1", "find my order O1"),
        ("enrol_in_course", "Enrol a student in a course.", ("course_id",), "write", "course", "the course C1", "enrol me in the course C1"),
        ("invite_user", "Invite a user.", ("email",), "write", "user", "my account", "invite a user"),
    ],
)  # fmt: skip
def test_which_one_is_told_by_the_facts_and_not_by_a_request_for_any(
    name: str, description: str, arguments: tuple[str, ...], effect: Any, kind: str | None, subject: str, asked: str
) -> None:
    tool = Tool(
        name=name, description=description, parameters={"properties": {a: {} for a in arguments}}, effect=effect
    )
    assert deed(tool, Focus(tool=name, arguments={}, kind=kind, object=subject)) == asked
