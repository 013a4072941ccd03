"""What each compute node moved when (`traffic`, `days`), and what serves it (`machine`)."""
