"""The pages and the posts of their forms, one module for each page."""
