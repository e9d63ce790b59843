"""What the context inspector shows: what the model saw, what was taken away, why, at what cost.

`spine` reads the whole course of a conversation in a few light queries and folds nothing: timeline
and charts come from it. Only a single call (`traced`), two of them (`difference`) and the make-up
of the context (`composition`) fold the path.
"""
