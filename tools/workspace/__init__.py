"""Files of a workspace as the tools see them: paths, directories, lines, the port."""
