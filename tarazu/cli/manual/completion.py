"""Completion of `tarazu` for bash: commands, verbs, options, choices, files, application names, running job steps.

The script needs nothing but bash 4; it starts no process of tarazu. It is found by bash-completion as
/usr/share/bash-completion/completions/tarazu, or read with `source`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tarazu.cli.manual import described
from tarazu.cli.manual.described import Command, Option

_SCRIPT = r"""# bash completion of tarazu: made from its parsers by `python -m tarazu.cli.manual`.

# What stands behind a command's words: its verbs and its options.
_tarazu_verbs() {
    case $1 in
@VERBS@
    *) REPLY= ;;
    esac
}

_tarazu_options() {
    case $1 in
@OPTIONS@
    *) REPLY= ;;
    esac
}

# What an option's argument is: a kind, `: CHOICE…`, `any`, or `none` where it has no argument.
_tarazu_argument() {
    case "$1 $2" in
@ARGUMENTS@
    *) REPLY=none ;;
    esac
}

# What a command takes without an option.
_tarazu_places() {
    case $1 in
@PLACES@
    *) REPLY=any ;;
    esac
}

_tarazu_offer() { # KIND CURRENT
    local state=$HOME/.local/state/tarazu found word
    case $1 in
    ': '*) mapfile -t COMPREPLY < <(compgen -W "${1#: }" -- "$2") ;;
    file)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        ;;
    directory)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$2")
        ;;
    program) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
    application | step)
        if [[ $1 == application ]]; then
            found=("${TARAZU_RUN_HISTORY_DIR:-$state/history}"/*/*/)
        else
            found=("${TARAZU_RUN_MAP_DIR:-$state/maps}"/*/)
        fi
        [[ -d ${found[0]} ]] || return
        found=("${found[@]%/}")
        # Never by compgen -W: it would run what a directory's name holds, such as $(reboot).
        for word in "${found[@]##*/}"; do
            [[ $word == "$2"* ]] && printf -v word %q "$word" && COMPREPLY+=("$word")
        done
        ;;
    esac
}

_tarazu() {
    local current=${COMP_WORDS[COMP_CWORD]} path= flag= word REPLY i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == = ]] && continue # bash splits --app=NAME into three
        if [[ -n $flag ]]; then
            flag=
            continue
        fi
        if [[ $word == -* && $word != -- ]]; then
            _tarazu_argument "$path" "$word"
            [[ $REPLY != none ]] && flag=$word
            continue
        fi
        _tarazu_verbs "$path"
        if [[ " $REPLY " == *" $word "* ]]; then
            path=${path:+$path }$word
            continue
        fi
        _tarazu_places "$path"
        if [[ $REPLY == program ]]; then
            # From the program on all words are its own; bash itself offers files.
            [[ $word == -- && $((i + 1)) == "$COMP_CWORD" ]] && _tarazu_offer program "$current"
            return
        fi
    done
    [[ $current == = ]] && current=
    if [[ -n $flag ]]; then
        _tarazu_argument "$path" "$flag"
        _tarazu_offer "$REPLY" "$current"
    elif [[ $current == -* ]]; then
        _tarazu_options "$path"
        _tarazu_offer ": $REPLY" "$current"
    else
        _tarazu_verbs "$path"
        if [[ -n $REPLY ]]; then
            _tarazu_offer ": $REPLY" "$current"
        else
            _tarazu_places "$path"
            _tarazu_offer "$REPLY" "$current"
        fi
    fi
}

complete -o bashdefault -o default -F _tarazu tarazu
"""


def script() -> str:
    """The whole script. Imports every command."""
    commands = described.commands()
    every = list(_walk(commands))
    words = {path: " ".join(_word(verb) for verb in command.verbs) for path, command in every}
    parts = {
        "VERBS": [("", " ".join(map(_word, commands))), *((p, w) for p, w in words.items() if w)],
        "OPTIONS": [("", "--help --version"), *((path, _flags(command)) for path, command in every)],
        "ARGUMENTS": [
            (f"{path} {flag}", _kind(option))
            for path, command in every
            for option in command.options
            for flag in option.flags
            if option.argument
        ],
        "PLACES": [(path, kind) for path, command in every if (kind := _places(command.arguments))],
    }
    text = _SCRIPT
    for name, rows in parts.items():
        text = text.replace(f"@{name}@", "\n".join(_cases(rows)))
    return text


def _walk(commands: Iterable[Command], path: str = "") -> Iterator[tuple[str, Command]]:
    """Every command and verb with its words behind `tarazu`."""
    for command in commands:
        words = f"{path} {_word(command)}".strip()
        yield words, command
        yield from _walk(command.verbs, words)


def _word(command: Command) -> str:
    return command.name.rpartition(" ")[2]


def _flags(command: Command) -> str:
    return " ".join(max(option.flags, key=len) for option in command.options)


def _kind(option: Option) -> str:
    return f": {' '.join(option.choices)}" if option.choices else option.takes or "any"


def _places(arguments: Iterable[Option]) -> str:
    """Of the first argument of which something is known."""
    known = (kind for argument in arguments if (kind := _kind(argument)) != "any")
    return next(known, "")


def _cases(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    by_reply: dict[str, list[str]] = {}
    for pattern, reply in rows:
        by_reply.setdefault(reply, []).append(f"'{pattern}'")
    for reply, patterns in by_reply.items():
        yield f"    {' | '.join(patterns)}) REPLY='{reply}' ;;"
