"""People and the context: the policy in force, previews, changes by hand, pins, trials."""
