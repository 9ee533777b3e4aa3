"""Scale: one run on many machines.

    ray  shards of a plan as tasks on a Ray cluster
"""
