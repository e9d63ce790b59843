"""Other people's chat servers, measured beside this one in the same run."""
