"""Public results are remembered within a bound of memory."""

from takifugu.tables.engine import PublicResults


def test_what_was_asked_for_longest_ago_is_forgotten() -> None:
    results = PublicResults(max_bytes=200_000)
    rows = [(n, f"entity {n}") for n in range(300)]  # some 40 kB
    for n in range(100):
        results.keep(f"SELECT {n}", rows)
        assert results.get("SELECT 0") is rows  # asked for again and again
        assert results.get(f"SELECT {n}") is rows
    remembered = [n for n in range(100) if results.get(f"SELECT {n}") is not None]
    assert 2 <= len(remembered) <= 5 and remembered[0] == 0 and remembered[-1] == 99


def test_what_is_too_large_by_itself_is_not_remembered_and_nothing_is_counted_twice() -> None:
    results = PublicResults(max_bytes=10_000)
    results.keep("small", [(1,)])
    for _ in range(1_000):
        results.keep("small", [(2,)])
    assert results.get("small") == [(2,)]
    results.keep("large", [(n,) for n in range(1_000)])
    assert results.get("large") is None
    results.keep("small", [(3,)])
    assert results.get("small") == [(3,)]
