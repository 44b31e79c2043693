"""OpenDP after DuckDB: one integer Laplace mechanism on the vector of all counts."""

from collections.abc import Callable

from benchmarks._peers.answers import KEYS, Counts, answer
from benchmarks._peers.by_duckdb import COUNTED


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """Make the mechanism: two counts move by one each when a row is changed."""
    import duckdb
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    mechanism = make_laplace(*space, scale=2 / epsilon)
    assert mechanism.map(2) <= epsilon * (1 + 1e-12)
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")

    def work() -> Counts:
        rows = connection.execute(COUNTED, [path]).fetchall()
        counted = {(country, label): count for country, label, count in rows}
        noisy = mechanism([counted.get(key, 0) for key in KEYS])
        return [(*key, count) for key, count in zip(KEYS, noisy, strict=True)]

    return work


if __name__ == "__main__":
    answer(start)
