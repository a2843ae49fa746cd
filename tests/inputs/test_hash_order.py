"""The order of Batsim's hash table, and the profiles that it keeps for it."""

from __future__ import annotations

from batwatt.protocol.hash_order import hash_order, kept_parts


def test_order_of_libstdcxx():
    """As printed by a program that puts these names in a `std::unordered_map<std::string, int>` (GCC 12)."""
    names = ["a", "b", "c", "delay", "parallel_homogeneous"]
    assert hash_order(names) == names[::-1]
    walked = [int(name[8:]) for name in hash_order(f"profile-{number}" for number in range(31))]
    first = [30, 12, 14, 11, 7, 4, 6, 27, 3, 5, 2, 29, 16, 19, 1, 17]
    assert walked == [*first, 0, 24, 13, 15, 18, 9, 21, 22, 20, 23, 8, 26, 10, 25, 28]


def test_order_has_every_name_once():
    names = [f"{number:x}" * (number % 9 + 1) for number in range(1, 500)]
    assert sorted(hash_order(names)) == sorted(names)
    assert hash_order([]) == []


def test_part_goes_with_its_composed_profile_or_stays():
    """Three names in buckets of their own are walked from the last to the first."""
    assert hash_order("dce") == ["e", "c", "d"]
    assert kept_parts({"c": ("d", "e")}, "dce") == ["e"]  # e's turn is before c's, d's after
    assert kept_parts({"c": ("d",), "e": ("c",)}, "dce") == []  # e goes, then c that only e named, then d
    assert kept_parts({"c": ("e",), "d": ("c",)}, "dce") == ["e", "c"]
    assert kept_parts({}, "dce") == []
