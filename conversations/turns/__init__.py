"""The life of a turn: prompt, queue, calls opened and closed, tool calls, drafts, takeovers."""
