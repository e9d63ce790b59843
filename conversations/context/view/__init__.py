"""The model's input: messages as wire text, edits on them, and the rules of the API."""
