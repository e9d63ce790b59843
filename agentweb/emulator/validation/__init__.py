"""What the API refuses, in its order and its words."""
