"""The test runner behind `manage.py test`."""
