"""What a file system gives, on two sides: Lustre and CephFS."""
