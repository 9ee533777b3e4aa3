"""Checks: findings by rule, from messages, tools and failed calls alone.

    findings   what a check found
"""
