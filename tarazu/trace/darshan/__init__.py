"""The one reader of Darshan logs: `read` makes a `log`, `gaps` says what it cannot tell, `imports` learns from it."""
