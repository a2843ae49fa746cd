"""Messages are one printable line of at most 500 characters, whatever they are about."""

from __future__ import annotations

import pytest

from batwatt.errors import LONGEST, BatwattError, InputError, UnknownNameError, extra, message, printable


@pytest.mark.parametrize(
    "text, line",
    [
        ("plain, \u00fc and \u65e5\u672c", "plain, \u00fc and \u65e5\u672c"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x00b\x07c\x7fd\x9be", "a\\x00b\\x07c\\x7fd\\x9be"),
        ("right\u202eto left\u2066", "right\\u202eto left\\u2066"),
        ("two\nlines\r", "two\\x0alines\\x0d"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
    ],
)
def test_what_a_terminal_may_show(text, line):
    assert printable(text) == line


def test_a_long_word_is_shortened_in_its_middle():
    text = f"w.json: job '{'a' * 300}{'b' * 1000}': no such profile; name one"
    line = message(text)
    # 120 characters of the word, of which 23 tell how many of its 1303 are left out: 97 stay
    word = "'" + "a" * 48 + "[...1206 characters...]" + "b" * 46 + "':"
    assert line == f"w.json: job {word} no such profile; name one"


def test_many_words_are_shortened_in_their_middle():
    assert message("two\nlines\tand  \x1b[2J") == "two lines and \\x1b[2J" and message("x" * LONGEST) == "x" * LONGEST
    text = "begin " + "word " * 400 + "end"
    line = message(text)
    assert len(line) == LONGEST and line.startswith("begin word") and line.endswith("word end")
    head, _, rest = line.partition("[...")
    left, _, tail = rest.partition(" characters...]")
    assert len(head) + int(left) + len(tail) == len(text)


@pytest.mark.parametrize(
    "error",
    [
        BatwattError("a\x1b" * 900),
        InputError("f\x1bile", "prob\u202elem " * 300, "hint\x00"),
        UnknownNameError("where", "kind", "\x1b" * 2000, [f"name-{n}" * 20 for n in range(50)], "Hint."),
    ],
)
def test_every_error(error):
    assert len(str(error)) <= LONGEST and str(error).isprintable()


def test_a_library_that_is_not_installed_is_asked_for_in_one_line():
    with pytest.raises(InputError) as caught, extra("study"):
        import no_such_library.part  # noqa: F401
    assert str(caught.value) == (
        "batwatt[study]: the library 'no_such_library' is not installed; "
        "pip install -e '.[study]' in the clone of batwatt"
    )
    # so that who tries an import, and can do without, goes on
    assert isinstance(caught.value, ImportError) and caught.value.exit_code == 2
