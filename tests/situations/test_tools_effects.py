"""The effect of a tool is read from its name, its hints and the start of its description."""

from __future__ import annotations

import pytest

from whilesim.situations.tools import parse_tools

CASES = {
    "read": """get_account
        order_lookup | | orderStatus | Check the status of an order
        issue_status | | refund_status | | return_policy | | booking_details | | exchange_rate | Get the exchange rate
        schedule | Returns the schedule of a clinic | check_in_stock | Check in stock availability
        look_up_member | | get_agent_details | Get details of an agent | list_escalations | | request_status |
        run_diagnostics | Runs diagnostics on the router | generate_report | Generate a report
        weather | The current weather in a city | faq | | availability | | github.get_issue | | mcp__crm__find_contact |
        open_orders | Lists open orders | charges | All charges of the month | isEligible | | can_refund | | rates |
        x | Allows the agent to retrieve bookings | x | Returns the balance | x | Retrieving the current order
        x | Use this tool when you need to look up an order | x | Ruft den Bestellstatus ab | x | Consulta el saldo
        x | 查询订单状态 | x | 注文の状態を取得します | consultar_pedido | | bestellung_abrufen |
        place_details | | post_details | | password_reset_check | | block_list | | filter_offers |
        store_locator | | activity_log | | message_history | | cart_view |
        x | Unpaid invoices of a customer | tarifas | Tarifas para un trayecto | get_manager | Gets the manager of an employee
        x | Finds a song and returns the title | tell_time | Tells the time in a city | check_in_date |
        get_answer | Sends a GET request to the server and keeps it | quote_price | Quotes a price
        tide_table | Return tides of a harbour | tides | Return the tides of a day""",
    "write": """issue_refund | Issue a refund
        refund_order | | return_item | Starts a return | book_flight | | report_lost_card | Reports a lost card
        check_in_passenger | | checkInGuest | Checks in a guest | log_out | | transfer_funds | Transfer funds between accounts
        transfer_to_savings | Transfer money to savings | notify_customer | Notify the customer by SMS
        update_agent_status | | request_callback | Request a callback | run_payroll | Run payroll
        generate_label | Generate a return label | account_close | | jira_create_issue | | get_or_create_customer |
        find_and_replace | | open_ticket | Opens a ticket | order_pizza | Order a pizza | order | Place an order
        x | This function is used to delete a user | x | Tool to send an SMS | x | Cancelling an order
        x | API endpoint to update prices | x | Bestellung stornieren | x | Cancela una reserva | x | 取消订单
        x | 注文をキャンセルします | cancelar_pedido | | rechnung_erstellen | | annuler_commande | | lock_card |
        refund_request | Creates a refund request | select_seat | Select a seat | transfer_points | Transfer points
        mailing_list_create | | place_bid | | post_comment | | lock_card |
        x | Finds a song and plays it | tell_kitchen | Tells the kitchen about an allergy | display.set_brightness |
        shipping_address | Changes the place that a parcel goes to | send_agent_report |
        return_boat | Return a boat to its owner | pass_on | Escalates the price |
        x | Notifies the customer that an agent will call | x | Pauses a line; nobody takes over the number
        frobnicate | | approve | Asks the manager for approval of a discount""",
    "handoff": """escalate | | escalate_to_manager | | handoff_to_agent | | hand_off | | transfer_to_human |
        transfer_to_billing | Transfer to the billing agent | call_supervisor | | contact_support | Contact support
        human_handoff | | connect_to_live_agent | | create_escalation | | page_oncall | | ask_human |
        assist | Connects the customer with a live support agent | assist | Hand the conversation over to a human
        warn_harbour | Escalates the case to the harbour safety team | quay | Hands the caller to the quay desk
        forward_call | Forward the call to a human agent | 转人工客服 | | route_to_department |""",
    "compute": """calculate_premium | Calculate a premium
        x | Works out the monthly rate from principal, rate and term | calculer | Calcule la part
        convert_currency | Convert an amount | think | Use the tool to think something over""",
}


def pairs(text: str) -> list[tuple[str, str]]:
    cells = [cell.strip() for line in text.splitlines() for cell in line.removesuffix("|").split("|")]
    found: list[tuple[str, str]] = []
    while cells:
        name = cells.pop(0)
        described = bool(cells) and (not cells[0] or " " in cells[0] or not cells[0].isascii())
        found.append((name, cells.pop(0) if described else ""))
    return found


TABLE = [(effect, *pair) for effect, text in CASES.items() for pair in pairs(text)]


@pytest.mark.parametrize(("effect", "name", "description"), TABLE)
def test_the_effect_is_read_from_name_and_description(effect, name, description):
    tool = parse_tools([{"name": name, "description": description}])[0]
    assert tool.effect == effect, tool.effect_rule


def test_a_guess_says_that_it_is_one_and_is_a_write():
    tool = parse_tools([{"name": "frobnicate"}])[0]
    assert tool.effect == "write"
    assert tool.effect_rule.endswith("(unsure)")


HINTS = [
    ({"readOnlyHint": True}, "delete_x", "", "read"),
    ({"readOnlyHint": False}, "get_x", "", "write"),
    ({"destructiveHint": True}, "get_x", "", "write"),
    ({"readOnlyHint": False}, "assist", "Transfer the customer to a human agent.", "handoff"),
    ({"readOnlyHint": True}, "escalate_case", "", "handoff"),
    ({}, "get_x", "", "read"),
]


@pytest.mark.parametrize(("hints", "name", "description", "effect"), HINTS)
def test_annotations_beat_all_but_the_name_of_a_handoff(hints, name, description, effect):
    tool = parse_tools([{"name": name, "description": description, "inputSchema": {}, "annotations": hints}])[0]
    assert tool.effect == effect


def test_a_stated_effect_beats_everything():
    stated = {"name": "escalate", "annotations": {"readOnlyHint": False}}
    assert parse_tools([{**stated, "effect": "READ"}])[0].effect == "read"
    assert (
        parse_tools([{"type": "function", "function": {"name": "delete_x"}, "x-effect": "compute"}])[0].effect
        == "compute"
    )


def test_what_all_descriptions_share_says_nothing():
    opening = "Part of the parcel desk, where users create, cancel and send parcels. Purpose: "
    tools = parse_tools(
        [
            {"name": f"t{n}", "description": opening + text}
            for n, text in enumerate(["Shows a parcel.", "Drops a parcel.", "Finds a shelf."])
        ]
    )
    assert [t.effect for t in tools] == ["read", "write", "read"]
    assert tools[0].description.startswith("Part of")


def test_what_computes_with_a_record_reads_it():
    properties = {"order_id": {"type": "string"}}
    tool = parse_tools([{"name": "calculate_refund", "parameters": {"type": "object", "properties": properties}}])[0]
    assert tool.effect == "read"


def test_a_tool_that_takes_only_numbers_and_says_nothing_else_computes():
    properties = {"height": {"type": "number"}, "weight": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties}
    assert parse_tools([{"name": "bmi", "parameters": parameters}])[0].effect == "compute"
    assert parse_tools([{"name": "set_size", "parameters": parameters}])[0].effect == "write"
    properties["order_id"] = {"type": "integer"}
    assert parse_tools([{"name": "bmi", "parameters": parameters}])[0].effect == "write"


def test_a_tool_that_asks_the_customer_reads_nothing():
    (tool,) = parse_tools([{"name": "request_photos", "description": "Ask the guest for photos. Sends a link."}])
    assert tool.effect == "write"


@pytest.mark.parametrize(
    ("name", "description", "arguments", "effect"),
    [
        ("transfer_ticket", "Transfer a ticket to another person.", ["ticket_id"], "write"),
        ("transfer_booking", "Transfer a booking to someone else.", ["booking_id", "name"], "write"),
        ("assign_ticket", "Transfer a ticket to a person.", ["ticket_id", "recipient_email"], "write"),
        ("transfer_ticket", "Transfer the ticket to another agent.", ["ticket_id"], "handoff"),
        ("transfer_ticket", "Transfer the ticket to another department.", ["ticket_id"], "handoff"),
        ("transfer_conversation", "Transfer the conversation to another person.", ["summary"], "handoff"),
        ("transfer_call", "Transfer to a specialist.", ["recipient"], "handoff"),
        ("list_for_resale", "List a ticket for resale.", ["ticket_id"], "write"),
        ("list_for_user", "List the orders of a user.", ["user_id"], "read"),
        ("list_orders", "List orders.", [], "read"),
    ],
)
def test_what_is_given_to_somebody_else_is_no_hand_off(
    name: str, description: str, arguments: list[str], effect: str
) -> None:
    properties = {argument: {"type": "string"} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "required": arguments}
    assert parse_tools([{"name": name, "description": description, "parameters": parameters}])[0].effect == effect
