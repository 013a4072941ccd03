"""AIPA: which files a job step will create, under which names, how large (paper, section 5.5.1)."""
