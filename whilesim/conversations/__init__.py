"""Conversations: cards played out, one by one, many at once.

    players            who speaks: agents and customers
    reading            what a script makes of a conversation
    wording            a deed as a phrase and as a participle
    intent             which tool a customer asks for
    arguments          values for a call, from what was said and read
    scripted           an agent that needs no model
    scripted_customer  a customer that needs no model
    rollout            one conversation from opening to stop
    journal            finished rows on disk
    progress           how far a run is, on one line
    engine             many conversations at once, bounded
"""
