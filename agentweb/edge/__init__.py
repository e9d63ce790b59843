"""What stands between the wire and the application: limits that hold before anything is asked."""
