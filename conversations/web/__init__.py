"""Pages and the posts of their forms, one module a page."""
