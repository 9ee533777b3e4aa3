"""Situations: from a policy and tools to a few situations in which every two values meet.

    policy    a policy text as clauses
    tools     tool schemas in any dialect as tools
    axes      the axes, their values, and what cannot happen
    covering  the rows in which every pair of values meets
"""
