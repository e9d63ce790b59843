"""Log lines, request ids, traces and the metrics page."""
