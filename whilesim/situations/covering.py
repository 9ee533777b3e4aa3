"""Covering: a few situations in which every two values meet."""
