"""What a plan asks for each expected file: which layout, or why it is left to Lustre."""
