"""The pages of the context inspector: what the model saw at each call, read-only.

The same views serve two addresses: `/c/<id>/inspect/` for the owner, and `/review/c/<id>/inspect/`
for staff with the permission to read content; there each access is recorded.
"""
