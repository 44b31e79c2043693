"""PipelineDP: its local backend on the rows as they come, with all keys public."""

from collections.abc import Callable, Iterator

from benchmarks._peers.answers import KEYS, Counts, answer


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """Its ε is that of one row more or less, which is half of ours; a row is a unit by itself."""
    import pipeline_dp
    import pyarrow.parquet as pq

    def rows() -> Iterator[tuple[str, str]]:
        for batch in pq.ParquetFile(path).iter_batches(columns=["country", "label"]):
            columns = (batch.column(name).to_pylist() for name in ("country", "label"))
            yield from zip(*columns, strict=True)

    def work() -> Counts:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon / 2, total_delta=0)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        result = engine.aggregate(
            rows(),
            pipeline_dp.AggregateParams(
                metrics=[pipeline_dp.Metrics.COUNT],
                noise_kind=pipeline_dp.NoiseKind.LAPLACE,
                max_partitions_contributed=1,
                max_contributions_per_partition=1,
                contribution_bounds_already_enforced=True,
            ),
            pipeline_dp.DataExtractors(
                partition_extractor=lambda row: row, value_extractor=lambda _: 1
            ),
            public_partitions=KEYS,
        )
        accountant.compute_budgets()
        return [(*key, found.count) for key, found in result]

    return work


if __name__ == "__main__":
    answer(start)
