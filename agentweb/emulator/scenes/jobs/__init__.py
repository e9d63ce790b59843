"""The job search of the scripted model: read, open, note, score, write, answer."""
