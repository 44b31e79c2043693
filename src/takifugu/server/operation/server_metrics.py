"""What a server counts for Prometheus: requests, refusals, workers and jobs, and never data.

Labels are words of the code: the template of a route, a role, a status, the kind of a refusal. No
dataset, no analyst, no query, no amount of a budget: whoever reads metrics for operation needs none
of them, time series are kept for years, and a label is easily forwarded to a place with fewer
rules. How often releases were refused does say something about how people work; so `/metrics` is
for owners and auditors alone.
"""

from collections.abc import Callable, Iterable
from functools import cache
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
OTHER = "other"  # an address that is no route: what was asked for must not become a label
NOBODY = "nobody"
Gauges = Callable[[], Iterable[tuple[str, str, str, float]]]


class ServerMetrics:
    """The counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "takifugu_requests",
            "Requests that were answered.",
            ("method", "route", "role", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "takifugu_request_seconds",
            "From the first byte of a request in the app to the last of its response.",
            ("route", "role"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._sent = Counter(
            "takifugu_sent_bytes", "Bytes of response bodies.", registry=self.registry
        )
        self._refused = Counter(
            "takifugu_refusals",
            "Requests that were refused, by the kind of the problem.",
            ("kind",),
            registry=self.registry,
        )
        # found once: labels are words of the code, of which there are few
        self._counted = cache(lambda *labels: self._requests.labels(*map(str, labels)))
        self._timed = cache(self._seconds.labels)
        self._began = monotonic()
        self._states: list[Gauges] = []
        self.registry.register(_Gauges(self._states))
        ProcessCollector(registry=self.registry)

    def answered(
        self, *, method: str, route: str, role: str, status: int, seconds: float, sent: int
    ) -> None:
        """Count a request that was answered."""
        self._counted(method, route, role, status).inc()
        self._timed(route, role).observe(seconds)
        self._sent.inc(sent)

    def refused(self, kind: str) -> None:
        """Count a refusal."""
        self._refused.labels(kind).inc()

    def watch(self, gauges: Gauges) -> None:
        """Ask for the present values of gauges whenever metrics are read.

        Each is a name, its help, a state and a value, as ("takifugu_jobs", "…", "running", 2).
        """
        self._states.append(gauges)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    """Values that are asked for when metrics are read."""

    def __init__(self, states: list[Gauges]) -> None:
        self._states = states

    def collect(self) -> Iterable[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for gauges in self._states:
            for name, words, state, value in gauges():
                if name not in families:
                    families[name] = GaugeMetricFamily(name, words, labels=("state",))
                families[name].add_metric((state,), value)
        return families.values()
