"""Benchmarks of what a reader notices: streamed answers, and pages of long conversations.

Absolute figures depend on the machine, so each is shown next to a baseline measured in the same
run: the minimum work for the same result. Cost that grows with the length of an answer or of a
conversation is a defect; tests assert that by counts, the benchmarks only show it as times.
"""
