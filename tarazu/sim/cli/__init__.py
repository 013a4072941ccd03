"""Commands that simulate, reproduce and compare. `tarazu.cli` finds them by name, where they are installed."""
