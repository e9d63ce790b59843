"""The context inspector's reads: what the model saw, what was removed, why, at what cost.

`call_index` reads all calls and transformations of a conversation in a few light queries and
replays nothing: timeline and charts are made from it. Only one call (`sent_messages`), two of them
(`difference`) and the composition of the context replay the path.
"""
