"""The fields of W&B's GraphQL API that clients ask for, a module a subject."""
