"""Cards: what each customer knows and wants, and the plan of a whole run.

    personas    how a customer types
    needs       a clause and a tool in a customer's words
    cards       a situation as a card
    writer      a model that phrases the cards
    twins       two cards that differ in one thing, so that the right action flips
    embeddings  texts as vectors
    selection   candidates that are far apart
    plan        everything that is decided before anyone speaks
    planning    from a policy and tools to a plan
"""
