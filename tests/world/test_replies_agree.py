"""Replies that agree: with the record, with one another, and with what was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from world_sets import tool

from whilesim.situations.tools import Tool
from whilesim.world.focus import build_focus
from whilesim.world.lookups import Shelf
from whilesim.world.mock import MockWorld
from whilesim.world.records import build_records
from whilesim.world.spec import WorldSpec

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def one(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def texts(*names: str) -> dict[str, Any]:
    return one(**dict.fromkeys(names, TEXT))


def rows(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


def read(name: str, returns: Mapping[str, Any] | None = None, **arguments: Any) -> Tool:
    return replace(tool(name, "", "read", **arguments), returns=returns)


def ask(world: MockWorld, name: str, **arguments: Any) -> Any:
    return json.loads(world.call(name, arguments))


CLIENTS = [
    read("get_client", texts("client_id", "full_name", "phone_number", "email", "zip_code"), client_id="string"),
    read("list_clients", rows(texts("client_id", "name", "phone", "email_address", "postal_code"))),
]


@pytest.mark.parametrize("seed", range(4))
def test_two_reads_say_the_same_under_names_that_mean_the_same(seed):
    world = MockWorld(CLIENTS, None, {}, seed)
    listed = ask(world, "list_clients")
    assert len(listed) == len(world.records["client"]) > 1
    for row in listed:
        told = ask(world, "get_client", client_id=row["client_id"])
        assert [row[f] for f in ("name", "phone", "email_address", "postal_code")] == [
            told[f] for f in ("full_name", "phone_number", "email", "zip_code")
        ]


def test_a_narrow_read_says_what_the_whole_record_says():
    card = read("get_client_zip_code", texts("client_id", "zip_code", "phone"), client_id="string")
    world = MockWorld([*CLIENTS, card])
    for row in ask(world, "list_clients"):
        told = ask(world, "get_client_zip_code", client_id=row["client_id"])
        assert (told["zip_code"], told["phone"]) == (row["postal_code"], row["phone"])


def test_a_list_of_keys_is_not_the_one_key_of_a_record():
    store = [
        read("get_memory", texts("key", "value"), key="string"),
        read("list_memory_keys", one(keys=rows(TEXT))),
    ]
    world = MockWorld(store)
    assert len(ask(world, "list_memory_keys")["keys"]) == len(world.records["memory"])


def test_an_example_s_names_are_filled_from_fields_that_mean_the_same():
    example = {"name": "Jane Doe", "phone": "555-0100"}
    tools = [CLIENTS[0], replace(read("get_client_card", client_id="string"), examples=(({}, example),))]
    world = MockWorld(tools)
    for key in world.records["client"]:
        told = ask(world, "get_client", client_id=key)
        assert ask(world, "get_client_card", client_id=key)["phone"] == told["phone_number"]


def test_two_names_in_one_reply_are_two_things_drawn_for_each_record():
    shown = one(invoice_id=TEXT, total_tax=NUMBER, tax=NUMBER, payment_status=TEXT, payment=TEXT)
    world = MockWorld([read("get_invoice", shown, invoice_id="string"), read("list_invoices", rows(shown))])
    listed = {row["invoice_id"]: row for row in ask(world, "list_invoices")}
    assert len({row["tax"] for row in listed.values()}) > 1
    for key, row in listed.items():
        assert ask(world, "get_invoice", invoice_id=key) == row


def test_what_no_record_has_differs_between_records_and_stays_the_same_for_one():
    change = replace(
        tool("update_client", "Update a client.", "write", client_id="string", phone="string"),
        returns=one(client_id=TEXT, ticket=NUMBER, note={"type": ["string", "null"]}),
    )
    world = MockWorld([*CLIENTS, change])
    keys = [*world.records["client"]]
    first, again = ([ask(world, "update_client", client_id=k, phone="555-0100") for k in keys] for _ in range(2))
    assert first == again
    assert len({row["ticket"] for row in first}) > 1
    assert {row["note"] for row in first} == {None}  # a schema that allows nothing is told nothing


def test_one_value_that_a_schema_forbids_leaves_the_others_true():
    shown = one(client_id=TEXT, name=TEXT, code={"type": "string", "pattern": r"^[A-Z]{2}-\d{4}$"})
    given = {"client": [{"client_id": "C1", "name": "Ann Lee", "code": "none"}]}
    world = MockWorld([read("get_client", shown, client_id="string")], spec=WorldSpec(records=given))
    told = ask(world, "get_client", client_id="C1")
    assert (told["client_id"], told["name"]) == ("C1", "Ann Lee")
    assert told["code"][2] == "-"


def test_an_address_that_is_one_text_names_the_city_and_the_zip_code_beside_it():
    shown = texts("client_id", "name", "address", "city", "zip_code")
    world = MockWorld([read("get_client", shown, client_id="string"), read("list_clients")])
    told = [ask(world, "get_client", client_id=key) for key in world.records["client"]]
    assert len({row["city"] for row in told}) > 1
    assert all(row["city"] in row["address"] and row["zip_code"] in row["address"] for row in told)


ROOMS = ("single", "double", "suite", "family", "studio", "twin", "dorm")
HOTEL = [
    read("search_rooms", rows(one(room_id=TEXT, type=TEXT, host_id=TEXT, price=NUMBER)), type={**TEXT, "enum": [*ROOMS]}),
    read("get_room", one(room_id=TEXT, type=TEXT, host_id=TEXT), room_id="string"),
    read("get_host", texts("host_id", "name"), host_id="string"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_search_of_a_catalogue_finds_what_was_asked_for_and_finds_it_again(seed):
    world = MockWorld(HOTEL, None, {}, seed)
    for kind in ROOMS:
        found = ask(world, "search_rooms", type=kind)
        assert {row["type"] for row in found} == {kind}
        assert ask(world, "search_rooms", type=kind) == found
        for row in found:
            assert row["host_id"] in world.records["host"]
            assert ask(world, "get_room", room_id=row["room_id"])["host_id"] == row["host_id"]


def test_a_search_by_a_part_of_an_address_finds_its_own_finds_again():
    hotel = one(hotel_id=TEXT, name=TEXT, address=texts("street", "city"))
    tools = [read("get_hotel", hotel, hotel_id="string"), read("search_hotels", rows(hotel), city="string")]
    world = MockWorld(tools)
    found = ask(world, "search_hotels", city="Atlantis")
    assert {row["address"]["city"] for row in found} == {"Atlantis"}
    assert ask(world, "search_hotels", city="Atlantis") == found


def test_a_search_for_a_word_that_no_such_record_can_have_finds_nothing():
    room = one(room_id=TEXT, type={**TEXT, "enum": ["single", "double"]})
    world = MockWorld([read("get_room", room, room_id="string"), read("search_rooms", rows(room), type="string")])
    assert ask(world, "search_rooms", type="palace") == []
    assert {row["type"] for row in ask(world, "search_rooms", type="Double")} == {"double"}


BODY = [
    tool("create_account", "Create an account.", "write", client_id="string", data="object"),
    read("get_account", account_id="string"),
    read("get_client", client_id="string"),
]


def test_a_key_in_a_free_body_is_the_new_record_s_key_and_no_other_s():
    world = MockWorld(BODY, None, {"tool": "create_account"}, 1)
    client, there = next(iter(world.records["client"])), next(iter(world.records["account"]))
    world.call("create_account", {"client_id": client, "data": {"account_id": there, "colour": "red"}})
    assert world.log[-1].failed
    assert "colour" not in world.records["account"][there]
    world.call("create_account", {"client_id": client, "data": {"account_id": "A1", "colour": "red"}})
    assert ask(world, "get_account", account_id="A1")["colour"] == "red"
    assert all(row["account_id"] == key for key, row in world.records["account"].items())


TICKETS = [
    tool("create_ticket", "Open a ticket.", "write", client_id="string", subject="string"),
    tool("delete_ticket", "Delete a ticket.", "write", ticket_id="string"),
    read("get_ticket", texts("ticket_id", "client_id", "desk_id", "subject"), ticket_id="string"),
    read("get_client", client_id="string"),
    read("get_desk", desk_id="string"),
]


def test_an_id_is_not_given_a_second_time_and_a_new_record_points_at_what_exists():
    world = MockWorld(TICKETS, None, {"tool": "create_ticket"}, 1)
    client, keys = next(iter(world.records["client"])), []
    for n in range(6):
        told = ask(world, "create_ticket", client_id=client, subject=f"s{n}")
        assert told["desk_id"] in world.records["desk"]
        keys.append(told["ticket_id"])
        world.call("delete_ticket", {"ticket_id": keys[-1]})
    assert len(set(keys)) == 6


@pytest.mark.parametrize("name", ["search_stops", "list_train_stops", "search_nonstop_trains", "search_onestop_trains"])
def test_a_tool_that_speaks_of_stops_answers_whatever_it_is_asked(name):
    stop = texts("train_stop_id", "from_station", "to_station", "departure_time")
    way = {"from_station": "string", "to_station": "string"}
    tools = [read("get_train_stop", stop, train_stop_id="string"), read(name, rows(stop), **way)]
    for seed in range(3):
        world = MockWorld(tools, None, {"tool": name}, seed)
        for asked in ({"from_station": "Nowhere", "to_station": "Elsewhere"}, dict(world.focus.arguments)):
            assert world.call(name, asked)


def test_the_legs_of_a_one_stop_journey_meet_where_the_world_s_own_lead():
    way = texts("flight_number", "from_station", "to_station")
    flights = [
        {"flight_number": f"T{n}", "from_station": a, "to_station": b}
        for n, (a, b) in enumerate([("Ulm", "Bonn"), ("Bonn", "Kiel"), ("Ulm", "Kiel")])
    ]
    tools = [
        read("get_flight", way, flight_number="string"),
        read("search_one_stop_flights", from_station="string", to_station="string"),
    ]
    world = MockWorld(tools, spec=WorldSpec(records={"flight": flights}))
    legs = ask(world, "search_one_stop_flights", from_station="Ulm", to_station="Kiel")[0]
    assert [leg["flight_number"] for leg in legs] == ["T0", "T1"]


class Counted(dict[str, Any]):
    """Counts how often all records of a kind are gone through."""

    looks = 0

    def values(self) -> Any:
        self.looks += 1
        return super().values()


def test_whose_all_records_are_is_found_in_one_look_at_what_points_at_them():
    policy = texts("policy_id", "client_id", "car_id")
    tools = [
        read("get_policy", policy, policy_id="string"),
        read("list_policies", client_id="string"),
        read("get_client", client_id="string"),
        read("get_car", car_id="string"),
        tool("paint_car", "Update the car.", "write", car_id="string", colour="string"),
        tool("move_plate", "Update the policy.", "write", policy_id="string", new_car_id="string"),
    ]
    given = {
        "client": [{"client_id": f"C{n}"} for n in range(40)],
        "policy": [{"policy_id": f"P{n}", "client_id": f"C{n}", "car_id": f"K{n}"} for n in range(40)],
        "car": [{"car_id": f"K{n}", "colour": "red"} for n in range(40)],
    }
    world = MockWorld(tools, spec=WorldSpec(records=given))
    shelf = Shelf(world.model, build_records(world.model, 1), 1)
    shelf.records["policy"] = counted = Counted(shelf.records["policy"])
    shelf.party = "C7"
    assert shelf.mine("car") == ["K7"]
    assert counted.looks == 1
    counted.looks = 0
    build_focus(shelf, {"tool": "move_plate"}, 1)
    assert counted.looks < 20
    assert {key: shelf.owner("car", key) for key in shelf.records["car"]} == shelf.owners("car")
    assert shelf.owner("car", "K9") == "C9"
    assert shelf.owner("car", "K99") == ""
