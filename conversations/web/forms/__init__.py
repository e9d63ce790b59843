"""The forms of pages: what comes in, checked before anything is stored."""
