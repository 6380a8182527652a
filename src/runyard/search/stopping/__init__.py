"""Owns the rules that end or pause a trial early: pure, and called for every reported value."""
