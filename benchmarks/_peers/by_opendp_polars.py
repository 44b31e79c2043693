"""OpenDP's context on a Polars frame, which aggregates, adds noise and keeps a budget in memory."""

from collections.abc import Callable

from benchmarks._peers.answers import KEYS, Counts, answer


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """A context for one query: a changed row is two contributions."""
    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.polars import dp_len

    dp.enable_features("contrib")

    def work() -> Counts:
        context = dp.Context.compositor(
            data=pl.scan_parquet(path).select("country", "label"),
            privacy_unit=dp.unit_of(contributions=2),
            privacy_loss=dp.loss_of(epsilon=epsilon),
            split_evenly_over=1,
        )
        keys = pl.LazyFrame(KEYS, schema=["country", "label"], orient="row")
        query = context.query().group_by("country", "label").agg(dp_len(signed=True))
        released = query.with_keys(keys).release().collect()
        counts: Counts = released.select("country", "label", "len").iter_rows()
        return counts

    return work


if __name__ == "__main__":
    answer(start)
