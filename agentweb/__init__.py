"""The Django project around the application: settings, servers, commands and instruments."""
