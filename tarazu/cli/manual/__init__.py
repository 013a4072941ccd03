"""Man pages and bash completion, made from the parsers that `--help` shows and from the settings' declarations.

`described` reads the parsers; `roff` writes what man reads; `pages` makes the pages of the commands and daemons,
`settings_page` that of tarazu.toml; `completion` the script for bash. `python -m tarazu.cli.manual DIR` writes all of
them below DIR as /usr/share has them.
"""
