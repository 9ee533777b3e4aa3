"""Chat: what models and people say to each other, and the one seam to a model.

    usage      calls, tokens and dollars
    messages   messages, tool calls and traces
    models     which model, where, with which parameters
"""
