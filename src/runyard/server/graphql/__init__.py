"""W&B's GraphQL surface: a tolerant executor, and the fields that clients ask for."""
