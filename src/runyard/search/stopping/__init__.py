"""Owns the rules that end or pause a trial before its time: pure, told of every reported value."""
