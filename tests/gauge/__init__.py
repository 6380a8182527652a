"""What programs need, and what follows from it."""
