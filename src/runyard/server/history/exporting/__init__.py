"""A run's history as a Parquet file."""
