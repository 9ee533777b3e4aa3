"""Training: kept rows as a LoRA adapter, and how to serve and evaluate it.

    recipe    what is trained and how, with a source for each default
    examples  conversations as tokens, those that a template breaks left out
    lora      the adapter trained, saved, and told how to be served
    commands  the same from a shell
"""
