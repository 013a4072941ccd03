"""What runs took with their files placed, and left to Lustre: by that tarazu decides whether to place the next one."""
