"""The operating system's part: the event loop, and processes started, found and ended."""
