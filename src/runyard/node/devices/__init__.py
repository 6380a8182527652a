"""GPUs and CPUs: which there are, who gets which, and what programs use of them."""
