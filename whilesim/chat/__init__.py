"""Chat: what models and people say to each other, and the one seam to a model.

    loop       one event loop in a thread of its own
    usage      calls, tokens and dollars
    messages   messages, tool calls and traces
    failures   what went wrong with a call, in one word
    bridge     litellm, loaded only for what nothing else can do
    models     which model, where, with which parameters
    actions    tools as JSON actions, for models that have none
    wire       requests and replies as bytes
    slots      how many requests an endpoint is asked at a time
    throttle   slots, budget, stops: what the endpoints of a run share
    replies    the reply cache
    transport  bytes out and in: our own POST, a client handed in, litellm
    endpoint   a chat model that can be asked
    preflight  whether each model can do what a run will ask
"""
