"""Conversations as things people keep: who may see them, the sidebar, search, erasure."""
