"""One program on many processes and nodes: started, told who is who, ended together."""
