"""What a host is."""

from __future__ import annotations

import pytest

from batwatt.model.platform import Sleep, sleeps_of


def test_sleep_states_of_a_text():
    assert sleeps_of(" 2:3:4, 5:6:7") == (Sleep(2, 3, 4), Sleep(5, 6, 7))
    assert sleeps_of("") == ()


@pytest.mark.parametrize("text", ["2", "2:3", "2:3:4:5", "2:x:4", "2:3:4;5:6:7"])
def test_a_text_that_has_no_triples(text):
    with pytest.raises(ValueError, match=r"invalid literal|values to unpack"):
        sleeps_of(text)
