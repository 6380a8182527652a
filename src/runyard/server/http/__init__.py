"""The HTTP front: sockets, TLS, who asks, what they may do, and how answers and errors look."""
