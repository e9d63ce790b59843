"""How the scripted model does a job search: read, open, note, score, write, answer from what is
in view.
"""
