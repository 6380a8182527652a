"""Sweeps at work: handing out, suggestions ahead, early stopping, long polls.

Owns no state but what can be made anew from the ledger.
"""
