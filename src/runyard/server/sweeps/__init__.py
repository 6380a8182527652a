"""Sweeps and their trials: `policy` decides, `ledger` stores, `serving` answers agents."""
