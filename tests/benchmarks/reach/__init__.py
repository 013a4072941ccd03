"""Metadata servers, progressive layouts tuned to a site's files, a second file system."""
