"""How a server is set up: the section ``[server]`` of a project file, and options of `serve`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServerSettings:
    """What can be set. Times are in seconds, sizes in bytes.

    Attributes:
        host: The address to listen on.
        port: The port; 0 for one that is free.
        certificate: The file of the TLS certificate; None where a proxy has it, or on loopback.
        key: The file of its key.
        proxies: The addresses of proxies whose ``X-Forwarded-*`` headers are trusted.
        origin: The address that browsers see, such as ``https://stats.example.org``; None for
            that of the request.
        workers: The most worker processes.
        worker_idle: After how long without work a worker ends.
        request_bytes: The largest body of a request.
        header_bytes: The largest head of a request: its line and its headers.
        request_time: How long a request may take to arrive, head and body.
        response_time: How long a client may take to read a part of a response.
        keep_alive: How long a connection without a request stays open.
        work_time: How long a task may run before it is cancelled.
        plan_time: How much processor time the plan of a query may take before it is ended.
        wait: How long a request waits for a task before it is answered with a job.
        rate: Requests a minute for each token.
        burst: Requests of a token at once.
        connections: The most connections at once.
        address_connections: The most of one address, or of one network of IPv6. Those of `proxies`
            have no such limit: behind them all addresses look alike.
        time_step: Counting and drawing of a release take multiples of this, so that how long they
            took says little about the rows; 0 for no such steps.
        stop_time: How long a stop waits for what is running.
        signing_key: The Ed25519 key that signs reports; None to sign elsewhere.
    """

    host: str = "127.0.0.1"
    port: int = 8461
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    origin: str | None = None
    workers: int = 2
    worker_idle: float = 300.0
    request_bytes: int = 65_536
    header_bytes: int = 16_384
    request_time: float = 15.0
    response_time: float = 30.0
    keep_alive: float = 30.0
    work_time: float = 3_600.0
    plan_time: float = 120.0
    wait: float = 10.0
    rate: int = 600
    burst: int = 60
    connections: int = 500
    address_connections: int = 100
    time_step: float = 0.05
    stop_time: float = 20.0
    signing_key: Path | None = None

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by TLS, so that cookies are sent over nothing else."""
        return self.certificate is not None or (self.origin or "").startswith("https://")
