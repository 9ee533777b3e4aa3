"""Keeping: rows, what became of them, and where they go.

    rows         one conversation with all that is known of it
    ledger       planned = kept + dropped + failed + unjudged
    certificate  which pairs the kept rows really hold
    export       rows in the forms that trainers read
    hub          rows as a published dataset
    report       rows as a page to look at
    simulation   all rows of a run
"""
