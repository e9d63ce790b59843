"""The files of a workspace for the tools: paths, directories, lines, the port."""
