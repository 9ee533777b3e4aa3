"""Keeping: rows, what became of them, and where they go.

    rows         one conversation with all that is known of it
    manifest     what a run was made of
    grades       rows held against findings, oracle and judge
    folders      a run on disk
    judging      a judge is opened, reads rows, and is held against people
    ledger       planned = kept + dropped + failed + unjudged; pass@k; hand-offs
    certificate  which pairs the kept rows really hold
    arrow        rows as a dataset and a data frame, and back
    pairs        two answers to one conversation, one right and one wrong
    export       rows in the forms that trainers read
    references   what a benchmark's items ask, name and expect
    decontaminate  rows that hold what a benchmark asks, by layer
    trainable    rows as a tokenizer's chat template writes them
    splits       parts that share no situation and no twin; near-duplicates
    hub          rows as a published dataset
    report       a row told in plain text, and a few for a notebook
    page         all rows as a page to look at
    simulation   all rows of a run
    loading      simulations read, from a folder or the Hub, and joined
"""
