"""What the daemons say to one another: messages, sockets and keys."""
