"""Situations: from a policy and tools to a few situations in which every two values meet.

    norms        is a piece of text a rule, and of which kind; by word lists, in a dozen languages
    roles        what headings, labels and lead-ins make of the text below them
    documents    any policy text as plain markdown, each character with its place in the source
    blocks       a document as headings, paragraphs, items, table rows and quotes
    drafts       the blocks of a document as rules, each with the context that it needs
    quotes       the rules that a chat model read out of a policy, each held against the text
    policy       a policy text as clauses
    annotations  types as Python and prose write them, as JSON Schema
    schemas      argument schemas of any dialect as plain JSON Schema
    docstrings   what a docstring says of arguments, reply and example calls
    dialects     where each way of writing tool schemas keeps name, description and arguments
    callables    Python functions, tool objects and source as tools, never executed
    openapi      the operations of an OpenAPI document as tools
    effects      whether a tool reads, writes, hands off or computes
    tools        tool schemas in any dialect as tools
    axes         the axes, their values, and what cannot happen
    tuples       every combination of values that must stand in some row, numbered
    constraints  what the rules leave possible, as tables
    filling      rows completed cell by cell
    skeleton     rows from algebra, with no search
    bound        how few rows a complete covering can have
    tabu         fewer rows, or fewer missing tuples in as many
    ordering     rows in an order such that every prefix covers much
    starts       complete coverings to begin with, and the proof of what cannot be covered
    covering     the rows in which every pair of values meets
"""
