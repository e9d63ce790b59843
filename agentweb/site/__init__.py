"""What holds for every page: middleware, the context of templates, error pages, the admin site."""
