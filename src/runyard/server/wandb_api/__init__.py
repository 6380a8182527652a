"""W&B's wire: GraphQL, the file stream, uploads. Only translates: the subjects do the work."""
