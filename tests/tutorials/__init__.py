"""The tutorials, run as they are written."""
