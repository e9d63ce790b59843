"""What a process does at its start, while it serves or works, and at its end."""
