"""Ground floor: what every house stands on.

    errors     every error this package raises on purpose
    seeds      draws that are functions of names
    text       small operations on text that several houses share
    jsontext   strict JSON, in and out
    templates  prompts, pages and word lists, read from files
"""
