"""Which layout a file gets, what Lustre accepts of layouts, and layouts as text."""
