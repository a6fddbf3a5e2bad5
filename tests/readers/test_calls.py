"""The call engine against a server on the loopback that fails in every way it can."""

from __future__ import annotations

import gzip
import itertools
import signal
import subprocess
import sys
import threading
import time
from email.utils import formatdate

import pytest
from fakeserver import CUT, HANG, SHORT, TRUNCATED, FakeServer, Reply, fails, says

from pytest_retrieval_eval.errors import DataError, SettingsError
from pytest_retrieval_eval.readers.services.budget import Budget, Price
from pytest_retrieval_eval.readers.services.calls import Call, Engine
from pytest_retrieval_eval.readers.services.pace import Bucket

KEY = "sk-test-0123456789"


def call(text="hello", **more):
    return Call({"model": "m", "messages": [{"role": "user", "content": text}]}, **more)


def engine(server, **options):
    options = {"backoff": 0.01, "timeout": 5.0, **options}
    return Engine(server.url + "/chat/completions", **options)


def run(server, calls, **options):
    made = engine(server, **options)
    try:
        stream = made.run(calls)
        return dict(stream), stream.stopped
    finally:
        made.close()


def content(answer):
    return answer.body["choices"][0]["message"]["content"]


def test_every_call_is_answered_once_and_under_its_own_number():
    with FakeServer(lambda request: says(request.text.upper())) as server:
        answers, stopped = run(server, (call(f"text {number}") for number in range(50)))
    assert {number: content(answer) for number, answer in answers.items()} == {n: f"TEXT {n}" for n in range(50)}
    assert stopped == ""
    assert len(server.requests) == 50


def test_answers_come_as_they_are_complete_and_not_in_order():
    with FakeServer(lambda request: says("x", delay=0.5 if request.text == "slow" else 0)) as server:
        made = engine(server)
        order = [number for number, _ in made.run([call("slow"), call(), call()])]
        made.close()
    assert order[-1] == 0


def test_calls_are_read_only_as_fast_as_they_are_made():
    read = []

    def source():
        for number in range(1000):
            read.append(number)
            yield call()

    with FakeServer(lambda request: says("x", delay=0.02)) as server:
        made = engine(server, concurrency=2)
        with made.run(source()) as stream:
            for _ in itertools.islice(stream, 10):
                pass
            seen = len(read)
            assert seen <= len(server.requests) + 3
        made.close()


@pytest.mark.parametrize(
    "trouble", [fails(status) for status in (408, 409, 429, 500, 502, 503, 504)] + [CUT, TRUNCATED, SHORT]
)
def test_what_may_be_mended_is_tried_again(trouble):
    with FakeServer([trouble, trouble, says("mended")]) as server:
        answers, _ = run(server, [call()])
    assert content(answers[0]) == "mended"
    assert answers[0].attempts == 3
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_cannot_be_mended_is_not_tried_again(status):
    with FakeServer([fails(status, "the reason")]) as server:
        answers, _ = run(server, [call()])
    assert len(server.requests) == 1
    assert answers[0].body is None
    assert answers[0].status == status
    assert answers[0].error == f"{server.url}/chat/completions answered {status} (the reason)"


def test_a_hanging_call_ends_and_is_tried_again():
    with FakeServer([HANG, says("late")]) as server:
        answers, _ = run(server, [call()], timeout=0.2)
    assert content(answers[0]) == "late"


def test_a_call_that_never_works_says_what_happened_and_how_often():
    with FakeServer([fails(500, "out of memory")]) as server:
        answers, _ = run(server, [call()], attempts=3)
    assert len(server.requests) == 3
    assert answers[0].error.endswith("answered 500 (out of memory) (in each of 3 attempts)")


def test_a_server_that_is_not_there_is_an_error_that_names_it():
    with FakeServer([says("x")]) as server:
        pass
    answers, _ = run(server, [call()], attempts=2)
    assert f"{server.url}/chat/completions cannot be reached" in answers[0].error


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_waited_for(form):
    def answer(request):
        if request.number:
            return says("ok")
        if form == "seconds":
            return fails(429, Retry_After="0.6")
        now = time.time()
        return fails(429, Retry_After=formatdate(now + 1, usegmt=True), Date=formatdate(now, usegmt=True))

    with FakeServer(answer) as server:
        answers, _ = run(server, [call()])
    first, second = (request.at for request in server.requests)
    assert content(answers[0]) == "ok"
    assert second - first >= (0.6 if form == "seconds" else 0.9)


def test_all_calls_wait_when_the_service_says_so():
    with FakeServer(
        lambda request: says("ok", delay=0.05) if request.number else fails(429, Retry_After="0.5")
    ) as server:
        run(server, [call() for _ in range(12)], concurrency=2)
    began = server.requests[0].at
    at_once = [request for request in server.requests if request.at - began < 0.3]
    assert len(at_once) <= 3  # those that were under way with the first


def test_a_longer_wait_than_allowed_stops_the_calls():
    with FakeServer([fails(429, "slow down", Retry_After="3600")]) as server:
        answers, stopped = run(server, [call() for _ in range(50)], concurrency=1, patience=5)
    assert len(server.requests) == 1
    assert len(answers) == 1
    assert "asks to wait 3600 s, more than the 5 s allowed" in stopped


@pytest.mark.parametrize(
    "reply", [fails(401), fails(404), fails(429, "no money", code="insufficient_quota")], ids=["401", "404", "quota"]
)
def test_what_every_call_would_meet_stops_the_calls(reply):
    with FakeServer([reply]) as server:
        answers, stopped = run(server, [call() for _ in range(100)], concurrency=2)
    assert len(server.requests) <= 2
    assert answers[0].error == stopped


def test_a_service_that_fails_call_after_call_is_left_alone():
    with FakeServer([fails(500)]) as server:
        answers, stopped = run(server, [call() for _ in range(500)], attempts=2, concurrency=4)
    assert 10 <= len(answers) <= 14
    assert stopped.startswith("10 calls failed one after the other, at last: ")


def test_a_service_that_answers_now_and_then_is_not_left_alone():
    with FakeServer(lambda request: fails(400 if request.text.endswith("0") else 500)) as server:
        calls = [call(f"{number}") for number in range(40)]
        answers, stopped = run(server, calls, attempts=1, concurrency=1)
    assert len(answers) == 40
    assert stopped == ""


def test_calls_that_are_wrong_themselves_do_not_stop_the_others():
    with FakeServer(lambda request: fails(400, "too long") if request.number < 30 else says("ok")) as server:
        answers, stopped = run(server, [call() for _ in range(40)])
    assert len(answers) == 40
    assert sum(answer.body is not None for answer in answers.values()) == 10
    assert stopped == ""


def test_an_error_under_a_good_status_is_an_error():
    overloaded = Reply({"error": {"message": "upstream is busy", "code": 503}})
    with FakeServer([overloaded, says("ok")]) as server:
        answers, _ = run(server, [call()])
    assert content(answers[0]) == "ok"
    with FakeServer([Reply({"error": {"message": "bad input", "code": "bad"}})]) as server:
        answers, _ = run(server, [call()])
    assert len(server.requests) == 1
    assert "bad input" in answers[0].error


def test_redirects_are_not_followed():
    with FakeServer([Reply({}, status=307, headers={"Location": "http://127.0.0.1:9/"})]) as server:
        answers, _ = run(server, [call()])
    assert answers[0].status == 307


# --- how fast ---------------------------------------------------------------------------------


def test_no_more_calls_at_once_than_allowed():
    with FakeServer(lambda request: says("x", delay=0.02)) as server:
        run(server, [call() for _ in range(40)], concurrency=5)
    assert 2 <= server.most_at_once <= 5


def test_an_overloaded_service_is_asked_less():
    """The service takes 3 calls at once and refuses more."""
    at_once, lock, refused = [0], threading.Lock(), []

    def answer(request):
        with lock:
            at_once[0] += 1
            many = at_once[0] > 3
        time.sleep(0.02)
        with lock:
            at_once[0] -= 1
        refused.append(many)
        return fails(429) if many else says("x")

    with FakeServer(answer) as server:
        answers, _ = run(server, [call() for _ in range(150)], concurrency=64, attempts=20)
    assert all(answer.body is not None for answer in answers.values())
    assert sum(refused) < 0.5 * len(refused)


def test_requests_per_minute():
    with FakeServer([says("x")]) as server:
        began = time.monotonic()
        run(server, [call() for _ in range(30)], requests_per_minute=1200)
    # 20 a second: the first 20 at once, the other 10 in half a second.
    assert server.requests[-1].at - began >= 0.5


def test_tokens_per_minute():
    with FakeServer([says("x", tokens=(90, 10))]) as server:
        began = time.monotonic()
        run(server, [call(input_tokens=90, output_tokens=10) for _ in range(15)], tokens_per_minute=60_000)
    assert server.requests[-1].at - began >= 0.5  # 1000 a second: 10 calls at once, 5 in half a second


def test_a_bucket_never_lets_through_more_than_its_limit_and_a_second():
    now = [0.0]
    bucket = Bucket(600, clock=lambda: now[0])
    sent = []
    for _ in range(2000):
        sent.append(now[0] + bucket.take(1))
        now[0] += 0.013
    for start in range(0, 60):
        assert sum(start <= moment < start + 60 for moment in sent) <= 610


# --- budgets ------------------------------------------------------------------------------------


def test_the_calls_stop_at_the_cap_and_say_so():
    with FakeServer([says("x")]) as server:
        answers, stopped = run(server, [call() for _ in range(50)], budget=Budget(calls=7))
    assert len(server.requests) == len(answers) == 7
    assert stopped == "the budget is used up: 7 of 7 calls"


def test_a_budget_is_shared_through_its_file(tmp_path):
    with FakeServer([says("x")]) as server:
        for expected in (10, 10, 5, 0):
            budget = Budget(calls=25, path=tmp_path / "budget")
            answers, _ = run(server, [call() for _ in range(10)], budget=budget)
            assert len(answers) == expected
            budget.close()


def test_what_was_set_aside_and_not_used_is_there_for_the_next_call():
    # 100 tokens are set aside for each call, 13 are used: 20 calls have room in 400 tokens, though 4 fill it at once.
    with FakeServer([says("x")]) as server:
        budget = Budget(tokens=400)
        answers, stopped = run(server, [call(input_tokens=50, output_tokens=50) for _ in range(20)], budget=budget)
    assert len(answers) == 20
    assert stopped == ""
    assert budget.spent.tokens == 260


def test_a_cap_on_tokens_and_on_cost_is_never_passed():
    with FakeServer([says("x")]) as server:
        budget = Budget(tokens=100)
        answers, stopped = run(server, [call(input_tokens=10, output_tokens=3) for _ in range(20)], budget=budget)
        assert len(answers) == 7
        assert budget.spent.tokens == 91
        assert stopped == "the budget is used up: 91 of 100 tokens"
        budget = Budget(cost=0.001, price=Price(input=10, output=20))
        answers, stopped = run(server, [call(input_tokens=10, output_tokens=3) for _ in range(20)], budget=budget)
        assert len(answers) == 6  # 0.00016 each
        assert stopped == "the budget is used up: 0.0010 of 0.0010 in cost"


def test_what_the_service_declines_costs_nothing_and_what_it_cuts_off_does():
    with FakeServer([fails(429), fails(500), says("x")]) as server:
        budget = Budget(calls=10, tokens=1000)
        run(server, [call(input_tokens=10, output_tokens=10)], budget=budget)
    assert (budget.spent.calls, budget.spent.tokens) == (1, 13)
    with FakeServer([CUT, says("x")]) as server:
        budget = Budget(calls=10, tokens=1000)
        run(server, [call(input_tokens=10, output_tokens=10)], budget=budget)
    assert (budget.spent.calls, budget.spent.tokens) == (2, 33)


def test_what_is_beyond_counting_is_a_sentence():
    budget = Budget(cost=2e7, price=Price(input=5e9, output=0))
    with pytest.raises(DataError, match=r"^what calls cost cannot be counted"):
        budget.hold(2000, 0)
    assert budget.spent.calls == 0
    with FakeServer([says("ok", tokens=(10**30, 1))]) as server, pytest.raises(DataError, match="cannot be counted"):
        run(server, [call()], budget=Budget(calls=5))


def test_a_cost_without_a_price_is_refused():
    with pytest.raises(SettingsError, match="needs the model's price"):
        Budget(cost=1.0)


def test_processes_that_count_at_once_count_right(tmp_path):
    path = tmp_path / "budget"
    code = f"""
from pytest_retrieval_eval.readers.services.budget import Budget

budget, made = Budget(calls=150, tokens=10**6, path={str(path)!r}), 0
for _ in range(100):
    hold = budget.hold(10, 10)
    if hold is not None:
        budget.settle(hold, 5, 5)
        made += 1
print(made)
"""
    workers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    got = [int(worker.communicate()[0]) for worker in workers]
    assert sum(got) == 150
    budget = Budget(calls=150, path=path)
    assert (budget.spent.calls, budget.spent.tokens) == (150, 1500)
    budget.close()


# --- stopping -------------------------------------------------------------------------------------


def test_what_was_answered_can_be_read_after_the_calls_were_cancelled():
    with FakeServer(lambda request: says("x") if request.number < 8 else HANG) as server:
        made = engine(server, concurrency=4)
        stream = made.run([call() for _ in range(100)])
        next(stream)
        deadline = time.monotonic() + 5
        while len(server.requests) < 12 and time.monotonic() < deadline:  # 8 are answered and 4 hang
            time.sleep(0.01)
        stream.cancel()
        assert 1 + len(list(stream)) == 8
        assert stream.stopped == "the calls were cancelled"
        assert list(stream) == []
        made.close()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no such signals")
def test_an_interrupt_loses_nothing_that_was_answered():
    def interrupt(*_):
        raise KeyboardInterrupt

    def answer(request):
        if request.number == 9:  # 4 calls are under way: 6 have been answered
            while not taken:
                time.sleep(0.01)
            time.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
        return says("x") if request.number < 6 else HANG

    taken = []
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with FakeServer(answer) as server:
            made = engine(server, concurrency=4)
            stream = made.run([call() for _ in range(100)])
            with pytest.raises(KeyboardInterrupt):
                for number, _ in stream:
                    taken.append(number)
                    time.sleep(30)
            stream.cancel()
            taken += [number for number, _ in stream]
            assert len(taken) == len(set(taken)) == 6
            made.close()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_body_that_does_not_unpack_is_tried_again():
    packed = Reply(raw=b"no gzip", headers={"Content-Encoding": "gzip"})
    with FakeServer([packed, says("ok")]) as server:
        answers, _ = run(server, [call()])
    assert content(answers[0]) == "ok"


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("reply", [Reply(raw=DEEP), Reply(raw=DEEP, status=500), Reply(raw=b"caf\xe9")])
def test_a_body_that_is_no_json_is_tried_again(reply):
    with FakeServer([reply, says("ok")]) as server:
        answers, _ = run(server, [call()])
    assert content(answers[0]) == "ok"


@pytest.mark.parametrize("charset", ["hex", "undefined", "idna", "no such"])
def test_an_error_in_an_encoding_that_is_none_is_an_error(charset):
    page = Reply(raw=b"<p>not here\xff", status=403, headers={"Content-Type": f"text/html; charset={charset}"})
    with FakeServer([page]) as server:
        answers, _ = run(server, [call()])
    assert "answered 403 (<p>not here\ufffd)" in answers[0].error


def test_a_body_without_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("pytest_retrieval_eval.readers.services.calls._LARGEST", 2**20)
    bomb = Reply(raw=gzip.compress(b" " * 2**24), headers={"Content-Encoding": "gzip"})
    with FakeServer([bomb]) as server:
        answers, _ = run(server, [call()])
    assert answers[0].error.endswith("answered 200 with more than 1,048,576 bytes")
    assert len(server.requests) == 1


def test_a_stream_that_is_left_makes_no_more_calls():
    with FakeServer(lambda request: says("x", delay=0.02)) as server:
        made = engine(server, concurrency=2)
        with made.run(call() for _ in range(10_000)) as stream:
            next(stream)
        made.close()
        time.sleep(0.2)
        seen = len(server.requests)
        time.sleep(0.1)
        assert len(server.requests) == seen < 1000


def test_cancelled_before_it_began():
    with FakeServer([HANG]) as server:
        made = engine(server)
        for _ in range(20):
            stream = made.run([call()])
            stream.cancel()
            assert list(stream) == []
        made.close()
        made.close()


def test_waits_end_when_the_calls_stop():
    """One call is in a long back-off when the key is found to be wrong."""

    def answer(request):
        return fails(500, Retry_After="60") if request.text == "first" else fails(401, delay=0.1)

    def fails(status, delay=0.0, **headers):
        return Reply({"error": "no"}, status, {name.replace("_", "-"): value for name, value in headers.items()}, delay)

    began = time.monotonic()
    with FakeServer(answer) as server:
        _, stopped = run(server, [call("first"), call("second")])
    assert "answered 401" in stopped
    assert time.monotonic() - began < 5


def test_an_error_of_the_source_reaches_the_caller():
    def source():
        yield call()
        raise LookupError("no such text")

    with FakeServer([says("x")]) as server:
        made = engine(server)
        with pytest.raises(LookupError, match="no such text"):
            list(made.run(source()))
        made.close()


def test_two_streams_of_one_engine_keep_apart():
    with FakeServer(lambda request: says(request.text, delay=0.01)) as server:
        made = engine(server, concurrency=3)
        one, other = made.run([call("a")] * 20), made.run([call("b")] * 20)
        assert {content(answer) for _, answer in one} == {"a"}
        assert {content(answer) for _, answer in other} == {"b"}
        made.close()


# --- the key ---------------------------------------------------------------------------------------


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    monkeypatch.setenv("A_KEY", KEY + "\n")
    caplog.set_level("DEBUG")
    with FakeServer(lambda request: fails(401, f"wrong key: {request.headers['authorization']}")) as server:
        answers, stopped = run(server, [call()], key_env="A_KEY")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "wrong key: Bearer ***" in stopped
    assert KEY not in repr(answers) + stopped + caplog.text


def test_the_key_in_a_header_of_its_own(monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    with FakeServer([says("x")]) as server:
        run(server, [call()], key_env="A_KEY", key_header="api-key")
    assert server.requests[0].headers["api-key"] == KEY
    assert "authorization" not in server.requests[0].headers


def test_no_key_is_sent_that_was_not_named(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeServer([says("x")]) as server:
        run(server, [call()])
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("value", [None, "", "two words", "sk-ü", "sk-\x07"])
def test_a_key_that_is_none_is_refused_without_being_shown(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("A_KEY", value)
    with pytest.raises(SettingsError, match="the environment variable A_KEY") as caught:
        Engine("http://127.0.0.1:9/v1", key_env="A_KEY")
    assert not value or value not in str(caught.value)


def test_a_password_in_the_url_is_refused_without_being_shown():
    with pytest.raises(SettingsError, match="holds a user name or a password") as caught:
        Engine("https://user:secret@example.org/v1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"attempts": True}, {"timeout": 0}, {"backoff": -1}, {"requests_per_minute": 0}]
)
def test_settings_that_cannot_be_meant(options):
    with pytest.raises(SettingsError):
        Engine("http://127.0.0.1:9/v1", **options)


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://example.org", "", "http://[::1", "http://a:b/", "http://a\x00"]
)
def test_urls_that_are_none(url):
    with pytest.raises(SettingsError, match="the URL of a service"):
        Engine(url)
