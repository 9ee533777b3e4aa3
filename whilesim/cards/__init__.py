"""Cards: what each customer knows and wants, and the plan of a whole run.

    personas    how a customer types
    cards       a situation as a card
    twins       two cards that differ in one thing, so that the right action flips
    embeddings  texts as vectors
    selection   candidates that are far apart
    plan        everything that is decided before anyone speaks
"""
