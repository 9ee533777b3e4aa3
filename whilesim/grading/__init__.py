"""Grading: what was wrong, what was right, and whether the grader can be believed.

    checks    findings by rule, over the whole trace
    outcome   how a conversation ended, held against its oracle
    rubric    what a judge is asked
    judge     a model's reading of one conversation
    verdicts  findings, oracle and judge put together
    trust     whether a judge agrees with people, and with itself
    label     keep or drop, by a person, one conversation a screen
"""
