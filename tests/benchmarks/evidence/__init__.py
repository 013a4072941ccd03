"""What decisions rest on, judged on measured data: docs/validation.md."""
