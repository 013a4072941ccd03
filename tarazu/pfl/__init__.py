"""Layouts that fit a site's files (paper, section 8.6): sizes in; component ends, stripe counts and their cost out."""
