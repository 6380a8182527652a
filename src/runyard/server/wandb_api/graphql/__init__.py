"""GraphQL without a schema: documents, their arguments, ids and pages."""
