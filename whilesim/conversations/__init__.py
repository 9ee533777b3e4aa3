"""Conversations: cards played out, one by one, many at once.

    players   who speaks: agents and customers
    scripted  players that need no model
    rollout   one conversation from opening to stop
    journal   finished rows on disk
    engine    many conversations at once, bounded
"""
