"""Text made shorter so that it still reads: by characters, by lines, as JSON."""
