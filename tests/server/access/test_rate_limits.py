"""How often a token may call, and how often an address may fail."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.project.server_section import ServerSettings
from takifugu.server.access.rate_limits import (
    FAILURES,
    MAX_BUCKETS,
    AtOnce,
    Buckets,
    Limiter,
    neighbourhood,
)
from tests.server.access.conftest import Running, Seconds

ME = "/api/v1/me"


@given(
    rate=st.integers(1, 1000),
    burst=st.integers(1, 20),
    waits=st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0, 7.0, 60.0]), max_size=60),
)
def test_no_stretch_of_time_has_more_calls_than_it_may(
    rate: int, burst: int, waits: list[float]
) -> None:
    """The law of the bucket, by counting: in any stretch at most burst + rate x its length."""
    clock = Seconds()
    buckets = Buckets(rate, burst, clock)
    admitted: list[float] = []
    for wait in waits:
        clock.time += wait
        too_soon = buckets.take("a")
        if not too_soon:
            admitted.append(clock.time)
        else:
            assert abs(too_soon - buckets.wait("a")) < 1e-9
    for first, start in enumerate(admitted):
        for last in range(first, len(admitted)):
            most = burst + rate / 60 * (admitted[last] - start)
            assert last - first + 1 <= most + 1e-6


def test_after_the_time_that_it_says_a_call_is_admitted() -> None:
    clock = Seconds()
    buckets = Buckets(30, 3, clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    wait = buckets.take("a")
    assert wait == 2
    assert buckets.take("b") == 0  # everybody has their own
    clock.time += wait
    assert buckets.take("a") == 0 and buckets.take("a") > 0


def test_memory_is_bounded() -> None:
    buckets = Buckets(1, 1, Seconds())
    for number in range(MAX_BUCKETS + 100):
        buckets.take(str(number))
    assert len(buckets._kept) == MAX_BUCKETS


def test_a_token_that_calls_too_often_is_told_when_to_come_back(running: Running) -> None:
    slow = Running(running.state, running.clock, running.seconds, ServerSettings(rate=60, burst=2))
    one, two = (slow.client(slow.token(name=name).secret) for name in ("ana", "bo"))
    assert [one.get(ME).status_code for _ in range(3)] == [200, 200, 429]
    got = one.get(ME)
    assert got.headers["retry-after"] == "1" and got.json()["type"].endswith("too-often")
    assert two.get(ME).status_code == 200
    slow.seconds.time += 1
    assert one.get(ME).status_code == 200


def test_what_is_forbidden_counts_too(running: Running) -> None:
    slow = Running(running.state, running.clock, running.seconds, ServerSettings(rate=60, burst=2))
    client = slow.client(slow.token("analyst").secret)
    assert [client.get("/api/v1/tokens").status_code for _ in range(3)] == [403, 403, 429]


def test_a_session_and_its_token_share_a_limit(running: Running) -> None:
    slow = Running(running.state, running.clock, running.seconds, ServerSettings(rate=60, burst=2))
    made = slow.token("owner")
    browser, program = slow.client(), slow.client(made.secret)
    browser.cookies.set("takifugu", slow.state.begin_session(made.record).secret)
    assert [browser.get(ME).status_code, program.get(ME).status_code] == [200, 200]
    assert [browser.get(ME).status_code, program.get(ME).status_code] == [429, 429]


def test_failed_sign_ins_are_limited_by_address(running: Running) -> None:
    headers = {"Origin": "http://testserver"}
    client = running.client()

    def enter(secret: str) -> int:
        return client.post("/sign-in", data={"token": secret}, headers=headers).status_code

    assert [enter("tf_wrong") for _ in range(FAILURES)] == [401] * FAILURES
    assert enter("tf_wrong") == 429
    good = running.token().secret
    assert enter(good) == 429  # also a right one: or guessing would go on
    assert running.client(good).get(ME).status_code == 200  # but who has a token calls
    unread = {"Content-Type": "multipart/form-data; boundary=x", **headers}
    assert client.post("/sign-in", content="--x", headers=unread).status_code == 429
    running.seconds.time += 30
    assert enter(good) == 303


def test_signing_in_over_and_over_is_limited_by_token(running: Running) -> None:
    slow = Running(running.state, running.clock, running.seconds, ServerSettings(rate=60, burst=2))
    headers, secret = {"Origin": "http://testserver"}, slow.token().secret
    client = slow.client()
    found = [
        client.post("/sign-in", data={"token": secret}, headers=headers).status_code
        for _ in range(3)
    ]
    assert found == [303, 303, 429]


def test_wrong_tokens_in_headers_are_limited_too(running: Running) -> None:
    wrong = running.client("tf_wrong")
    assert [wrong.get(ME).status_code for _ in range(FAILURES + 1)] == [401] * FAILURES + [429]
    got = wrong.get(ME)
    assert int(got.headers["retry-after"]) == 30


def test_what_counts_as_one_address() -> None:
    assert neighbourhood("192.0.2.7") == "192.0.2.7" == neighbourhood("::ffff:192.0.2.7")
    one, two = "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::9"
    assert neighbourhood(one) == neighbourhood(two) != neighbourhood("2001:db8:1:3::9")
    assert neighbourhood("fe80::1%eth0") == neighbourhood("fe80::2")
    assert neighbourhood(None) == neighbourhood("") == "unknown"
    assert neighbourhood("testclient") == "testclient"


def test_the_clock_is_monotonic_unless_a_test_has_another() -> None:
    limiter = Limiter.from_rate(60, 1)
    assert limiter.tokens.take("a") == 0 and 0 < limiter.tokens.take("a") <= 1


def test_calls_that_last_are_limited_too(running: Running) -> None:
    """Streams of one token must not take all connections; one that ended makes room."""
    slow = Running(
        running.state, running.clock, running.seconds, ServerSettings(rate=100_000, burst=2)
    )
    made = slow.token(name="ana")
    own, client = made.record.id, slow.client(made.secret)
    assert slow.limiter.at_once.begin(own) and slow.limiter.at_once.begin(own)
    got = client.get(ME)
    assert got.status_code == 429 and got.headers["retry-after"] == "1"
    assert slow.client(slow.token(name="bo").secret).get(ME).status_code == 200
    slow.limiter.at_once.end(own)
    for _ in range(5):  # each ends before the next begins
        slow.seconds.time += 1
        assert client.get(ME).status_code == 200
    assert slow.limiter.at_once.begin(own) and not slow.limiter.at_once.begin(own)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab")), max_size=50), st.integers(1, 3))
def test_what_runs_is_counted_by_name(steps: list[tuple[bool, str]], most: int) -> None:
    at_once = AtOnce(most)
    running = {"a": 0, "b": 0}
    for begins, name in steps:
        if begins:
            assert at_once.begin(name) == (running[name] < most)
            running[name] = min(most, running[name] + 1)
        elif running[name]:
            at_once.end(name)
            running[name] -= 1


def test_a_call_that_breaks_has_ended(running: Running) -> None:
    slow = Running(
        running.state, running.clock, running.seconds, ServerSettings(rate=100_000, burst=1)
    )

    @slow.app.middleware("http")
    async def broken(request: Any, call_next: Any) -> Any:
        await call_next(request)
        raise RuntimeError

    client = slow.client(slow.token().secret)
    for _ in range(3):
        slow.seconds.time += 1
        with pytest.raises(RuntimeError):
            client.get(ME)
    record = slow.state.tokens()[0].id
    assert slow.limiter.at_once.begin(record)
