"""The ledger in the database: sweeps, trials, agents, and who has which trial."""
