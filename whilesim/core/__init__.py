"""Ground floor: what every house stands on.

    errors     every error this package raises on purpose
    seeds      draws that are functions of names
    keys       what must never be seen, taken out of texts
    text       small operations on text that several houses share
    jsontext   strict JSON, in and out
    stats      rates with intervals, exact tests, and how many tasks a question needs
    templates  prompts, pages and word lists, read from files
"""
