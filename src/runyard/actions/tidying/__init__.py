"""What is left over: copies of code, nodes' disks, runs that the server lacks."""
