"""Work on text and bytes from outside, in processes with limits on what they may use and reach."""
