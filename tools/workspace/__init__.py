"""Files of a person's workspace as tools see them: paths, folders, lines."""
