"""Which existing files are worth moving to other OSTs: found, weighed, written as commands. Nothing here moves one."""
