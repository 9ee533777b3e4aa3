"""Conversations: cards played out, one by one, many at once.

    players            who speaks: agents and customers
    reading            what a script makes of a conversation
    rulebook           the rule that a question is about, and how a customer is told it
    said               what a customer's sentences say of one argument
    wording            a deed as a phrase and as a participle; an argument as one asks for it
    intent             which tool a customer asks for, and what settles a request
    arguments          values for a call, from what was said and read
    searching          which read comes next, and what the reads have shown
    scripted           an agent that needs no model
    scripted_customer  a customer that needs no model
    rollout            one conversation from opening to stop
    journal            finished rows on disk
    progress           how far a run is, on one line
    engine             many conversations at once, bounded
"""
