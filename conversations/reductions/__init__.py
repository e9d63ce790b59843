"""People and the context: the policy in force, previews, manual changes, pins, policy trials."""
