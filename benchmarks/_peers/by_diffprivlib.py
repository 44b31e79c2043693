"""diffprivlib: its histogram of two columns, on codes that PyArrow reads from the file."""

from collections.abc import Callable

from benchmarks._peers.answers import Counts, answer
from benchmarks._visits import COUNTRIES, LABELS


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """An accountant for one query: its ε is that of one row more or less, which is half of ours."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from diffprivlib import BudgetAccountant
    from diffprivlib.tools import histogram2d

    names = {
        "country": [f"country {i}" for i in range(COUNTRIES)],
        "label": [f"label {i}" for i in range(LABELS)],
    }

    def codes(table: pa.Table, column: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        read = table[column].unify_dictionaries().combine_chunks()
        place = {name: code for code, name in enumerate(names[column])}
        new = np.array([place[name] for name in read.dictionary.to_pylist()], dtype=np.uint8)
        found: np.ndarray[tuple[int], np.dtype[np.uint8]] = new[read.indices.to_numpy()]
        return found

    def work() -> Counts:
        table = pq.read_table(path, columns=list(names), read_dictionary=list(names))
        edges = [np.arange(len(every) + 1) - 0.5 for every in names.values()]
        noisy, *_ = histogram2d(
            codes(table, "country"),
            codes(table, "label"),
            epsilon=epsilon / 2,
            bins=edges,
            accountant=BudgetAccountant(epsilon=epsilon / 2, delta=0),
        )
        return (
            (country, label, float(noisy[i, j]))
            for i, country in enumerate(names["country"])
            for j, label in enumerate(names["label"])
        )

    return work


if __name__ == "__main__":
    answer(start)
