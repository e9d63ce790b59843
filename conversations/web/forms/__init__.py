"""The forms of the pages: input, validated before anything is stored."""
