"""Evals: whether the agent you ship does what your tickets ask.

    publish   tickets and results on the Hub, each push beside those before it
    traces    what an agent did on one ticket
    tickets   golden tickets: read, checked, made from rows and from failing traces
    sandbox   the mock world in the state of a ticket
    rules     what must not be done, as data
    agents    anything that answers, as an agent; four that anybody could write in a minute
    scorers   a trace held against its ticket
    results   traces, scores and floors of one run, and what they say
    setup     what is settled before a ticket is played; frozen protocols
    runner    evaluate(): tickets played and scored
    gate      pass or fail, for people and for CI
    compare   two runs on the same tickets; runs over time
    serve     any agent as an OpenAI-compatible endpoint on loopback
    tau2      results of tau2-bench: read, compared, and what trivial agents score there
    commands  the same from a shell
    plugin    one pytest test per ticket
"""
