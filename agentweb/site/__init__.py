"""What holds for every page: middleware, templates and their context, errors, the admin site."""
