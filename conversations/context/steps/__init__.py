"""The transformations: what each takes from the view and puts in its place."""
