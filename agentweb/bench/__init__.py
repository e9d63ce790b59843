"""Measures of what a reader feels: an answer as it streams, pages of long conversations.

Figures of a machine mean little, so each is told beside a floor measured in the same run: the
least that anybody does for the same. What grows with the length of an answer or a conversation is
a defect; that is asserted by counts in tests and only shown here as times.
"""
