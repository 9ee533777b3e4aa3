"""Cards: what each customer knows and wants, and the plan of a whole run.

    speech      the grammar of a customer's English
    personas    how a customer types
    facts       what a customer knows, in sentences
    requests    what a tool does, as a customer asks for it
    needs       a clause as something a customer lives or asks
    cards       a situation as a card
    writer      a model that phrases the cards
    twins       two cards that differ in one thing, so that the right action flips
    embeddings  texts as vectors
    selection   candidates that are far apart
    plan        everything that is decided before anyone speaks
    desk        cards written and chosen for the rows of a covering
    planning    from a policy and tools to a plan
"""
