"""Every command that the pages name could be typed; `make try-docs` types them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarazu.cli import COMMANDS, description
from tests.docs.grammar import problem
from tests.docs.reading import LANGUAGES, PAGES, Typed, blocks, simple_commands, typed


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_block_of_code_says_what_it_is(page: Path) -> None:
    unknown = [f"{block}: {block.language!r}" for block in blocks(page) if block.language not in LANGUAGES]
    assert not unknown, f"expected ```LANGUAGE of {', '.join(sorted(LANGUAGES))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_is_one_of_its_program(page: Path) -> None:
    assert [f"{each}: {wrong}" for each in typed(page) if (wrong := problem(each))] == []


def test_examples_of_the_help_are_commands_of_it() -> None:
    wrong = []
    for name in COMMANDS:
        for line in description(name).splitlines():
            found = re.match(r"\s*(tarazu [a-z-]+( -| [a-z]+ -|.* {3,}|$).*)", line)
            if found is None:
                continue
            (words, *_) = simple_commands(re.split(r" {3,}", found[1])[0])
            wrong += [f"{line}: {why}"] if (why := problem(Typed(name, 1, words, True))) else []
    assert wrong == []


def command(*words: str, in_prose: bool = False) -> Typed:
    return Typed("page.md", 1, words, in_prose)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tarazu", "stutas"), "no command of tarazu: 'stutas'"),
        (
            ("tarazu", "status", "--jsno"),
            "tarazu status: unrecognized arguments: --jsno; did you mean '--json'?",
        ),
        (("uvx", "--from", ".[watif]", "tarazu", "whatif"), "no extra of tarazu: watif"),
        (("make", "tset"), "no verb of make: 'tset'"),
        (("systemctl", "enable", "--now", "tarazu-msdd"), "no unit 'tarazu-msdd'"),
        (("pip", "install", "tarazu[os]"), "no extra of tarazu: os"),
        (("python", "-m", "tests.benchmarks.burst"), "no module tests.benchmarks.burst"),
        (("tarazu-ossd", "--onec"), "tarazu-ossd: error: unrecognized arguments: --onec"),
        (("trazu", "status"), "an unknown program: trazu"),
        (("tarazu", "doctor", "ledger", "show"), ""),
        (("tarazu", "history", "show", "APP", "[RUN]"), ""),
        (("/usr/bin/systemctl", "enable", "tarazu-mdsd"), ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_no_command_is_found(words: tuple[str, ...], expected: str) -> None:
    assert problem(command(*words)) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tarazu history show", ""),  # a mention: the application is missing
        ("tarazu history shwo", "no verb of tarazu history: 'shwo'"),
        ("tarazu change tune --applly", "no option of tarazu change tune: '--applly'"),
        ("tarazu run --mode place -- …", ""),
        ("trazu", ""),  # no command: a piece of code
    ],
)
def test_a_mention_may_lack_words_but_not_invent_them(words: str, expected: str) -> None:
    assert problem(command(*words.split(), in_prose=True)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' \"d e\" f\\ g", [("a", "b c", "d e", "f g")]),
        ("a # it's said\nb", [("a",), ("b",)]),
        ("x=1 a && b | c; d &", [("a",), ("b",), ("c",), ("d",)]),
        ("a > out 2>&1 < in b", [("a", "b")]),
        ('eval "$(a b)"', [("a", "b"), ("eval", "$(a b)")]),
        ("for i in 1 2; do\n a $i\ndone", [("for", "i", "in", "1", "2"), ("a", "$i"), ("done",)]),
        ("cat > f <<'END'\nx y\nEND\na", [("cat",), ("a",)]),
        ("a \\\n  b", [("a", "b")]),
    ],
)
def test_a_shells_text_is_cut_into_its_commands(text: str, expected: list[tuple[str, ...]]) -> None:
    assert list(simple_commands(text)) == expected
