"""Norms: orders, hand-offs, kinds and sentences, by tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import whilesim
from whilesim.situations.norms import language_of, sentences, unit
from whilesim.situations.policy import parse_policy


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("Ask for the order number", True),
        ("If the call drops, ring back within an hour", True),
        ("Politely decline any gift", True),
        ("Prefer tools over your own memory", True),
        ("Escort them to the door", True),
        ("Issue refunds only on Fridays", True),
        ("If it is late, wet or lost, tell them to call", True),
        ("If they want to cancel, change, or return an item", False),
        ("Anything else (grades, health) is out of scope: politely decline", True),
        ("If the card is on the list, refuse.", True),
        ("If they ask for tea, coffee", False),
        ("For returns, exchange", False),
        ("Still off -> order a new modem", True),
        ("Second theft – block the card", True),
        ("Tell them whatever the manual says", True),
        ("After closing, whatever the reason", False),
        ("Direct debit runs on the 5th", False),
        ("Issue status", False),
        ("Order, invoice, receipt", False),
        ("Clear and friendly", False),
        ("Change requests must be logged", False),
        ("Access Point Name", False),
        ("Weekly reports", False),
        ("Verifique a identidade do cliente", True),
        ("Prüfe zuerst den Vertrag des Kunden", True),
    ],
)
def test_orders_are_told_from_nouns(text, ordered):
    assert bool(unit(text).orders) is ordered


@pytest.mark.parametrize(
    ("text", "hands_off"),
    [
        ("Escalate billing disputes", True),
        ("Transfer the caller to a nurse", True),
        ("Put them through to the night manager", True),
        ("The agent cannot help and must hand off to a person", True),
        ("Never emit more than one handoff per message", True),
        ("Do not transfer the caller to a person", False),
        ("Try everything before transferring the user to a human", False),
        ("Hand the case to the fraud unit.", True),
        ("Complaints are passed to the shift lead.", True),
        ("Let a human take over when you are unsure.", True),
        ("If it is to be paid to another account, transfer.", True),
        ("Get a colleague from the night shift on the line.", True),
        ("Press enquiries go to the communications office.", True),
        ("Raise the case with your supervisor.", True),
        ("Send the customer an e-mail with the invoice.", False),
        ("Direct customers to the FAQ page.", False),
        ("Forward the confirmation e-mail to the customer.", False),
        ("Put the call on hold for at most a minute.", False),
        ("Route the parcel to the nearest depot.", False),
        ("Ask the customer to send the case number to us.", False),
        ("Transfer the funds to the customer's account.", False),
        ("The bank transfer takes two days", False),
        ("Transfer funds between accounts on request", False),
        ("Forward the file to archive_folder", False),
        ("you were transferred from another agent", False),
        ("敏感投诉转人工客服处理", True),
        ("Leite den Anruf an die nächste Kollegin weiter", True),
        ("Verbinde die Anruferin mit einer Kollegin", True),
        ("Auskünfte an Dritte geben wir nur mit einer hinterlegten Vollmacht", False),
        ("Geben Sie den Schlüssel an den Gast", False),
        ("Transfiere la llamada del cliente a un supervisor", True),
        ("担当者に引き継いでください", True),
        ("Do not bargain - just put the tenant through.", True),
        ("A loan above the limit is a decision for the branch manager.", True),
        ("Boats must be referred to underwriting.", True),
        ("Do not put the caller through.", False),
        ("Patch the update through the firewall.", False),
    ],
)
def test_a_hand_off_needs_a_person_and_is_not_denied(text, hands_off):
    assert unit(text).hands_off is hands_off


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("If you cannot answer, say so.", "must"),
        ("Members who owe money cannot freeze.", "must_not"),
        ("Do not add bags that the guest does not need.", "must_not"),
        ("The system does not check this, so the agent must.", "must"),
        ("An order can only be cancelled while it is pending.", "condition"),
        ("Guests may bring a dog.", "may"),
        ("A walk-in visit needs no appointment.", "may"),
        ("Identification is not required for an outage report.", "may"),
        ("No receipt is needed for an exchange.", "may"),
        ("Members do not need a ticket.", "may"),
        ("The user confirms the reason ('no longer needed') and must sign.", "must"),
        ("A photo of the card will do.", "may"),
        ("Former tenants get nothing.", "must_not"),
        ("Trial users receive no refund.", "must_not"),
        ("Auskünfte an Dritte geben wir nur mit einer hinterlegten Vollmacht.", "condition"),
        ("Eine Unterschrift ist nicht erforderlich.", "may"),
        ("Die Nachbarn und die Gäste bekommen nichts.", "must_not"),
        ("No hace falta cita previa para un cambio.", "may"),
        ("Should the diver mention a cold, you may move the dive.", "may"),
        ("Should the diver insist, the agent ends the call.", "must"),
        ("Nobody gets more than one kayak.", "must_not"),
        ("Nobody below 12, please.", "must_not"),
        ("Refuse to sell duty-free goods to staff.", "must_not"),
        ("There is no refund for audio guides.", "must_not"),
        ("There is no fee for children.", "condition"),
        ("Old stamps aren't valid.", "must_not"),
        ("I need everyone to lock the gate.", "must"),
        ("Opening the vault takes the consent of two directors.", "must"),
        ("Vor der Abfahrt ist die Plakette vorzuzeigen.", "must"),
        ("Sans billet, aucun échange n'est accepté.", "must_not"),
        ("Não é necessário apresentar o recibo.", "may"),
        ("Aucune signature n'est requise pour un échange.", "may"),
        ("La ricevuta non è necessaria per il cambio.", "may"),
        ("Voor een storing is geen identificatie nodig.", "may"),
        ("换货不需要收据", "may"),
        ("Dogs are welcome but must stay on a lead.", "must"),
        ("Fees are waived up to 20 dollars.", "condition"),
        ("Die Kunden dürfen keine Tiere in den Laden mitbringen.", "must_not"),
        ("El cliente puede cambiar la fecha.", "may"),
        ("不得透露余额", "must_not"),
        ("يجب التحقق من الهوية", "must"),
    ],
)
def test_the_kind_is_that_of_the_main_clause(text, kind):
    assert unit(text).kind() == kind


@pytest.mark.parametrize(
    "text",
    [
        "You are Mira, the voice of the museum.",
        "{{greeting}}",
        "https://example.org/policy",
        '"Thank you for waiting, you may go ahead."',
        "Do you want a receipt?",
        "Phone: 0800 1234",
        "Context: {context}",
        "The shop was founded in 1920.",
        "Our average visitor stays two hours.",
        "What you may decide yourself",
        "Example: refund the toaster",
    ],
)
def test_persona_facts_speech_and_placeholders_are_no_rules(text):
    assert unit(text).excluded()


def test_a_persona_with_a_duty_is_a_rule():
    assert not unit("You are never to share a password.").excluded()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Say it. Then stop.", 2),
        ("Ask Dr. Lund e.g. by phone. Then stop.", 2),
        ("Tell them 'PLEASE HOLD. THANK YOU.' and wait. Then stop.", 2),
        ("Wait (it may take long. Very long.) and stop.", 1),
        ("Work at once when it is present.If not, wait.", 2),
        ("先核对身份。再办理；不得代办。", 3),
    ],
)
def test_a_full_stop_ends_a_sentence_only_outside_brackets_and_quotations(text, count):
    assert len(sentences(text)) == count


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The agent must not share the data of a customer.", "en"),
        ("Der Kunde muss den Vertrag mit dem Namen nennen.", "de"),
        ("El agente debe pedir el número de la factura.", "es"),
        ("O agente deve pedir o número do pedido ao cliente.", "pt"),
        ("Le client doit donner le numéro de la facture.", "fr"),
        ("请先核对身份", "zh"),
        ("必ず確認してください", "ja"),
        ("يجب التحقق", "ar"),
    ],
)
def test_the_language_is_told_by_script_and_small_words(text, code):
    assert language_of(text) == code


def test_a_short_text_takes_the_language_of_its_document():
    assert language_of("Storno", "de") == "de"


@pytest.mark.parametrize(
    "path", sorted((Path(whilesim.__file__).parent / "words").glob("*.yaml")), ids=lambda p: p.stem
)
def test_word_lists_are_read_alike_with_and_without_the_fast_loader(path):
    text = path.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@pytest.mark.parametrize("heading", ["§ 1 Modem", "IV. Modem", "📶 Modem\n"])
def test_an_arrow_below_a_numbered_heading_is_an_item(heading):
    (clause,) = parse_policy(f"{heading}\nNo light -> restart the modem.\n").clauses
    assert clause.text.endswith("No light -> restart the modem.")


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("Box: {box}, " * 500, True),
        ("Box: {box}, " * 500 + "x", False),
        ("Box: " + "{{box}} / " * 5_000 + "x", False),
        ("https://" + "!" * 200_000 + "a", True),
        ("https://" + "!" * 200_000 + "a a", False),
    ],
    ids=["form", "form and a word", "one field", "address", "address and a word"],
)
def test_a_hostile_form_or_address_is_read_in_one_go_and_not_in_every_way_there_is(text, out):
    assert unit(text).excluded() is out
