"""SmartNoise SQL: its private reader on a pandas frame, where every row is a person."""

from collections.abc import Callable

from benchmarks._peers.answers import Counts, answer


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """Its ε is that of one row more or less, which is half of ours; all keys are public."""
    import pandas as pd
    from snsql import Privacy, from_df

    columns = {"country": {"type": "string"}, "label": {"type": "string"}}
    options = {"row_privacy": True, "censor_dims": False, "clamp_counts": False, "rows": 0}
    metadata = {"": {"world": {"visits": options | columns}}}

    def work() -> Counts:
        frame = pd.read_parquet(path, columns=list(columns))
        metadata[""]["world"]["visits"]["rows"] = len(frame)
        reader = from_df(frame, privacy=Privacy(epsilon=epsilon / 2, delta=0), metadata=metadata)
        _, *rows = reader.execute(
            "SELECT country, label, COUNT(*) AS n FROM world.visits GROUP BY country, label"
        )
        return [(str(country), str(label), float(count)) for country, label, count in rows]

    return work


if __name__ == "__main__":
    answer(start)
