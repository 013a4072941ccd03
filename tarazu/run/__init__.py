"""What happens around a program under `tarazu run`: `leader` does it, `before`, `during` and at its `end`.

`command_line` reads what is to run, `plan` talks to clientd and writes the map, `nodes` reaches the other nodes.
"""
