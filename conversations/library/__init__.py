"""A person's collection of conversations: access, the sidebar, search, the trash, erasure."""
