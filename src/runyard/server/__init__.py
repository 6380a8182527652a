"""The tracker: one process that owns all state.

Owns W&B's wire protocol, runyard's own API, authentication, and the store behind them. Everybody
else reaches it over HTTP. May import `search`.
"""
