"""World: a small stateful back-end made from nothing but the tools and the policy.

    spec         what a user knows better than inference
    attributes   what a policy says about records: fields, words, the current time
    verbs        what a tool's name says
    fitting      a value that a schema allows
    kinds        a kind of record and its fields; names and schemas read as such
    discovery    which kinds of record there are, and who the customer is
    targets      what each argument of a write does to its record
    deeds        what one tool does to which record: it reads, it writes, it is the customer's own
    model        the whole inferred world as a value, and as YAML
    entities     a world inferred from tools and a policy
    values       one field of one record, drawn by name
    dates        those of one record in order, and in keeping with its status
    records      seeded records that agree with one another
    lookups      records found, filtered and shown
    rows         one row of a list, one field that a call names, as a write leaves it
    effects      writes with their preconditions, hand-offs, arithmetic
    replies      answers in the shape of schemas and examples; the check of arguments
    arguments    the one right call of a situation's tool
    focus        what a situation is about, and what its customer knows
    mock         the world that answers calls: how a tool fails, and in which words
    oracle       what a right agent does in a situation
    live         a world that executes functions, on purpose only
"""
