"""World: a small stateful back-end made from nothing but the tools and the policy.

    entities   which kinds of record there are, and what each tool does to them
    records    seeded records that agree with one another
    faults     how a tool fails, and in which words
    mock       the world that answers calls
    oracle     what a right agent does in a situation
"""
