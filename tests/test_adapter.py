"""The adapter: which fault costs how many requests, what a failure says and hides, and the real client on the wire."""

import base64
import contextlib
import email.utils
import gzip
import importlib.util
import io
import json
import os
import re
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from fakes import Provider, Reply, Script, body
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter import (
    EXHAUSTED,
    FILTERED,
    Channel,
    ChatModel,
    Fault,
    Gate,
    Role,
    completion_of,
    make_role,
    openai_client,
    pause_asked,
    provider_fault,
)
from errors import BlockedError, LexPilotError, ModelOutputError, ProviderError, SettingsError
from records import ROLE_NAMES, RoleName
from replies import UnreadableReply

KEY = "sk-0123456789abcdef"
GENERAL = {"OPENAI_BASE_URL": "https://api.example.com/v1", "OPENAI_API_KEY": KEY}
WORDS: dict[RoleName, str] = {"evaluated": "EVAL", "user": "USER", "judge": "JUDGE"}
EVALUATED = "evaluated model 'm' at https://api.example.com/v1"

RESUME = "When that is mended, the same command resumes; other models, temperatures or token limits need a new --run-id"
WAIT = "The same command resumes: wait, or ask the provider for a higher limit"
MOVED = "Set the base URL to the address that it redirects to"
TOO_LONG = (
    "Give the model a longer context (a local server may divide its own among its slots); a smaller limit by "
    "--max-tokens, with a new --run-id, helps where the limit of the reply counts as well"
)
REFUSED = (
    "Its provider refuses this text: --record-blocked records the case as blocked and goes on; "
    "other providers for this role need a new --run-id"
)
PARAMETER = (
    "If that is about the model, change --model (LEXPILOT_MODEL); about the temperature, --temperature; about length or "
    "tokens, --max-tokens; --eval-params removes or replaces any field of the request (each with a new --run-id)"
)
FIELD = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
THINKING = "parameter.enable_thinking must be set to false for non-streaming calls"
ADVICE = {  # for the evaluated model with the general key
    400: PARAMETER,
    401: "Check the key in OPENAI_API_KEY and that it belongs to this endpoint",
    402: "Top up the account",
    403: "The account, the region or this very content is not allowed; the provider's words say which",
    404: "Check --model (LEXPILOT_MODEL) and the base URL, which often ends in /v1",
    422: PARAMETER,
}


def a_role(name: RoleName = "evaluated", env: Mapping[str, str] | None = None, timeout: float = 30.0) -> Role:
    return make_role(name, "m", 0.7, 64, timeout, {**GENERAL, **(env or {})})


def failure(who: object, tries: int, words: str) -> str:
    """The whole message of a call that failed for good."""
    status, marks = int(words[5:8]) if words.startswith("HTTP ") else 0, set(words.partition(": ")[0].lower().split())
    advice = ADVICE.get(status, MOVED if 300 <= status < 400 else RESUME)
    too_long = marks & {"context_length_exceeded", "exceed_context_size_error"}
    filtered = marks & FILTERED or "'content_filter'" in words
    advice = ADVICE[402] if marks & EXHAUSTED else TOO_LONG if too_long else REFUSED if filtered else advice
    return f"{who}, {tries} {'try' if tries == 1 else 'tries'}: {words}. {advice}"


def outcome(call: Callable[..., object], *args: object) -> tuple[type[LexPilotError] | None, str, str]:
    """The class of the failure (None for an answer), its message or the answer, and what was said on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            return None, str(call(*args)), said.getvalue()
        except LexPilotError as error:
            return type(error), str(error), said.getvalue()


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


# What may stand in the body of a 200 that is no answer: what it is, the body, the class of the failure, whether it may
# pass, and the words of the message.
BODIES: Sequence[tuple[str, bytes, type[LexPilotError], bool, str]] = (
    ("empty", b"", ProviderError, True, "the answer is blank"),
    ("blank", b" \r\n\t", ProviderError, True, "the answer is blank"),
    ("broken JSON", b'{"choices": [', ProviderError, True, "the answer is not JSON: '{\"choices\": ['"),
    ("page", b"<html>Sign in</html>\n", ProviderError, True, "the answer is not JSON: '<html>Sign in</html>'"),
    ("a stream", b"data: {}\n\n", ProviderError, True, "the answer is not JSON: 'data: {}'"),
    ("GBK", "不".encode("gbk"), ProviderError, True, "the answer is not JSON: '\ufffd\ufffd'"),
    ("nested too deeply", b"[" * 100_000, ProviderError, True, f"the answer is not JSON: '{'[' * 400}"[:400]),
    ("a list", b"[1, 2]", ProviderError, True, "the answer is not a JSON object: [1, 2]"),
    ("a text", b'"good"', ProviderError, True, "the answer is not a JSON object: 'good'"),
    ("null", b"null", ProviderError, True, "the answer is not a JSON object: None"),
    ("error 503", dump({"error": {"code": 503, "message": "busy"}}), ProviderError, True, "HTTP 503: busy"),
    ("error 401", dump({"error": {"code": 401, "message": "who?"}}), ProviderError, False, "HTTP 401: who?"),
    ("quota", dump({"error": {"type": "insufficient_quota", "message": "empty"}}), ProviderError, False, "an error in the answer insufficient_quota: empty"),
    ("account in arrears", dump({"error": {"code": "Arrearage", "message": "欠费"}}), ProviderError, False, "an error in the answer Arrearage: 欠费"),
    ("balance", dump({"error": {"code": "1113", "message": "余额不足"}}), ProviderError, False, "an error in the answer 1113: 余额不足"),
    ("content", dump({"error": {"code": "content_filter", "message": "no"}}), BlockedError, False, "an error in the answer content_filter: no"),
    ("four digits", dump({"error": {"code": 4290, "message": "full"}}), ProviderError, True, "an error in the answer 4290: full"),
    ("an error text", dump({"error": "overloaded"}), ProviderError, True, "an error in the answer: overloaded"),
    ("null choices", dump({"choices": None}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"choices": null}'),
    ("status object", dump({"choices": None, "base_resp": {"status_code": 5008, "status_msg": "余额不足"}}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"choices": null, "base_resp": {"status_code": 5008, "status_msg": "余额不足"}}'),
    ("no choices", dump({"id": "x"}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"id": "x"}'),
    ("empty choices", dump({"choices": []}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"choices": []}'),
    ("no message", dump({"choices": [{"finish_reason": "stop"}]}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"choices": [{"finish_reason": "stop"}]}'),
    ("null message", dump({"choices": [{"message": None}]}), ModelOutputError, True, 'the reply is rejected: it holds no completion: {"choices": [{"message": null}]}'),
    ("cut off", body("部分", "length"), ModelOutputError, True, "the reply is rejected: finish_reason is 'length': it was cut off at the token limit; raise --max-tokens"),
    ("filtered", body("部分", "content_filter"), BlockedError, True, "the reply is rejected: finish_reason is 'content_filter': the provider's content filter cut it"),
    ("null content", body(None), ModelOutputError, True, "the reply is rejected: it is blank; if the model reasons first, raise --max-tokens"),
    ("thoughts alone", body("<think>想</think>\n"), ModelOutputError, True, "the reply is rejected: it is blank; if the model reasons first, raise --max-tokens"),
)  # fmt: skip


class RoleTest(unittest.TestCase):
    def test_a_role_takes_its_own_variables_before_the_general_ones_and_openai_at_last(self) -> None:
        both, default = {"OPENAI_BASE_URL": "http://g/v1", "OPENAI_API_KEY": "gk"}, "https://api.openai.com/v1"
        for name, word in WORDS.items():
            own_url, own_key = f"LEXPILOT_{word}_BASE_URL", f"LEXPILOT_{word}_API_KEY"
            others = {
                f"LEXPILOT_{other}_{kind}": f"http://{other}"
                for other in WORDS.values()
                for kind in ("BASE_URL", "API_KEY")
                if other != word
            }
            for env, base_url, key, key_source in (
                ({**both, own_url: "http://o/v1", own_key: "ok"}, "http://o/v1", "ok", own_key),
                ({**both, own_url: "http://o/v1"}, "http://o/v1", "gk", "OPENAI_API_KEY"),
                ({**both, own_key: "ok"}, "http://g/v1", "ok", own_key),
                ({**both, **others}, "http://g/v1", "gk", "OPENAI_API_KEY"),
                ({**both, own_url: "", own_key: " \r\n"}, "http://g/v1", "gk", "OPENAI_API_KEY"),
                ({own_url: "\thttp://o/v1 \r\n", own_key: " ok\r\n"}, "http://o/v1", "ok", own_key),
                ({**both, "OPENAI_BASE_URL": " "}, default, "gk", "OPENAI_API_KEY"),
                (others, default, "", f"{own_key} or OPENAI_API_KEY"),
                ({}, default, "", f"{own_key} or OPENAI_API_KEY"),
            ):
                with self.subTest(role=name, env=env):
                    role = make_role(name, "m", 0.7, 64, 30.0, env)
                    self.assertEqual(
                        (role.name, role.base_url, role.key, role.key_source), (name, base_url, key, key_source)
                    )

    def test_a_base_url_is_split_into_what_the_client_needs_and_what_may_be_shown(self) -> None:
        for given_url, base_url, query, endpoint in (
            ("https://h/v1", "https://h/v1", (), "https://h/v1"),
            ("https://h/v1/", "https://h/v1", (), "https://h/v1"),
            ("https://h/v1//", "https://h/v1", (), "https://h/v1"),
            ("https://h", "https://h", (), "https://h"),
            ("https://h/", "https://h", (), "https://h"),
            ("https://h/v1/chat/completions", "https://h/v1", (), "https://h/v1"),
            ("https://h/v1/chat/completions/", "https://h/v1", (), "https://h/v1"),
            ("https://h/chat/completions", "https://h", (), "https://h"),
            ("https://h/v1/chat/completions?a=b", "https://h/v1", (("a", "b"),), "https://h/v1"),
            ("HTTPS://Host:8443/V1", "https://Host:8443/V1", (), "https://Host:8443/V1"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1", (), "http://[::1]:8080/v1"),
            ("http://例子.中国/v1", "http://例子.中国/v1", (), "http://例子.中国/v1"),
            ("https://h/v1?a=b%2Fc&d=e#f", "https://h/v1", (("a", "b/c"), ("d", "e")), "https://h/v1"),
            ("https://u:p@h:80/v1", "https://u:p@h:80/v1", (), "https://h:80/v1"),
            ("https://token@h/v1/?q=1", "https://token@h/v1", (("q", "1"),), "https://h/v1"),
            ("https://u:p@q@h/v1", "https://u:p@q@h/v1", (), "https://h/v1"),
        ):
            with self.subTest(given_url):
                role = a_role(env={"LEXPILOT_EVAL_BASE_URL": given_url})
                self.assertEqual((role.base_url, role.query, role.endpoint), (base_url, query, endpoint))

    def test_an_unusable_base_url_is_refused_by_the_name_of_its_variable_alone(self) -> None:
        for url in (
            *("api.example.com/v1", "localhost:8000/v1", "//h/v1", "/v1", "ftp://h/v1", "file:///v1", "https:h/v1"),
            *("http://", "http://:80/v1", "http://u:p@/v1", "http://h:0/v1", "http://h:65536/v1", "http://h:x/v1"),
            *("http://[::1/v1", "http://h/v 1", "http://h/v\t1", "http://h\n/v1", "http://h/v1 # x"),
            "http://h\u2100/v1",
        ):
            for variable in ("OPENAI_BASE_URL", "LEXPILOT_USER_BASE_URL"):
                message = f"variable {variable}: not a web address; it must look like https://HOST/v1"
                with self.subTest(url, variable=variable):
                    self.assertEqual(outcome(a_role, "user", {variable: url}), (SettingsError, message, ""))

    @settings(deadline=None, max_examples=60)
    @given(st.text("abcXYZ019-_", max_size=9), st.sampled_from(" \t\n\r\x00\x1b\x7f\x85é钥\u200b\u2028“"))
    def test_a_key_with_a_character_that_no_header_can_carry_is_refused_unseen(self, half: str, bad: str) -> None:
        for variable in ("OPENAI_API_KEY", "LEXPILOT_JUDGE_API_KEY"):
            message = f"variable {variable}: the key holds a blank, a control or a non-ASCII character"
            told = outcome(a_role, "judge", {variable: f"a{half}{bad}{half}z"})
            self.assertEqual(told, (SettingsError, message, ""))

    @settings(deadline=None, max_examples=60)
    @given(
        st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1),
        st.text(" \t\r\n\f\u3000", max_size=3),
        st.text(" \t\r\n\f\u3000", max_size=3),
    )
    def test_any_printable_key_comes_through_without_the_white_space_around_it(
        self, key: str, before: str, after: str
    ) -> None:
        self.assertEqual(a_role(env={"OPENAI_API_KEY": before + key + after}).key, key)

    @settings(deadline=None, max_examples=100)
    @given(
        st.sampled_from(("http", "https")),
        st.from_regex(r"(USER[a-z%0-9]{1,9}(:PASS[a-z%0-9:@]{0,9})?@)?", fullmatch=True),
        st.from_regex(r"[a-z][a-z0-9]{0,9}(\.example)?(:[1-9][0-9]{0,3})?", fullmatch=True),
        st.from_regex(r"(/[a-z0-9._~%-]{1,5}){0,3}", fullmatch=True),
        st.sampled_from(("", "/", "/chat/completions", "/chat/completions/")),
        st.from_regex(r"(\?[a-z]{1,3}=QUERY[a-z0-9]{1,5})?(#FRAGMENT)?", fullmatch=True),
    )
    def test_no_user_information_query_or_fragment_is_ever_shown(
        self, scheme: str, userinfo: str, host: str, path: str, tail: str, query: str
    ) -> None:
        role = a_role(env={"OPENAI_BASE_URL": f"{scheme}://{userinfo}{host}{path}{tail}{query}"})
        shown = f"{scheme}://{host}{path}"
        self.assertEqual((role.endpoint, repr(role)), (shown, f"evaluated model 'm' at {shown}"))
        self.assertEqual(role.base_url, f"{scheme}://{userinfo}{host}{path}")


class Asking(unittest.TestCase):
    def setUp(self) -> None:
        self.waits: list[float] = []
        self.now = 1000.0

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def model(self, script: Script, retries: int = 3, role: Role | None = None) -> ChatModel:
        return ChatModel(Channel(role or a_role(), script.connect, retries, 8, self.pause, lambda: self.now))


class RetryTest(Asking):
    def test_what_may_pass_is_asked_again_up_to_retries_times_and_anything_else_once(self) -> None:
        rows: list[tuple[str, Reply, type[LexPilotError], bool, str]] = [
            ("connection", Fault("Connection error"), ProviderError, True, "Connection error"),
            ("untrusted", Fault("self-signed", final=True), ProviderError, False, "self-signed"),
            *(
                (str(status), provider_fault(status, {"message": "so"}), ProviderError, passing, f"HTTP {status}: so")
                for status, passing in (
                    *((400, False), (401, False), (402, False), (403, False), (404, False), (422, False), (302, False)),
                    *((408, True), (409, True), (500, True), (503, True), (529, True)),
                )
            ),
            *BODIES,
        ]
        for what, reply, kind, passing, words in rows:
            for retries in (0, 1, 3):
                tries = retries + 1 if passing else 1
                with self.subTest(what, retries=retries):
                    self.waits.clear()
                    script = Script(evaluated=[reply] * tries)
                    said = outcome(self.model(script, retries).ask, "问")
                    notices = "".join(
                        f"{EVALUATED}: {words}; try {n + 2} of {retries + 1} in {wait:.1f} s\n"
                        for n, wait in enumerate(self.waits)
                    )
                    self.assertEqual(said, (kind, failure(EVALUATED, tries, words), notices))
                    self.assertEqual((len(script.asked), len(self.waits)), (tries, tries - 1))
                    self.assertEqual(kind.exit_status, 3)

    def test_a_good_reply_after_faults_is_the_answer(self) -> None:
        script = Script(evaluated=[Fault("reset"), b"", dump({"choices": []}), "答"])
        self.assertEqual(outcome(self.model(script).ask, "问")[:2], (None, "答"))

    def test_the_waits_double_from_one_second_to_sixty_less_up_to_half_by_chance(self) -> None:
        script = Script(evaluated=[Fault("reset")] * 11)
        outcome(self.model(script, 10).ask, "问")
        longest = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
        for wait, most in zip(self.waits, longest, strict=True):
            self.assertTrue(most / 2 <= wait <= most, self.waits)
        self.assertNotEqual(self.waits, longest)

    def test_a_wait_is_never_shorter_than_the_provider_asks_nor_than_its_own_turn(self) -> None:
        asked = [7.25, 600.0, 0.0, 1.0, 90.0]
        script = Script(evaluated=[*(Fault("503", 503, pause) for pause in asked), "答"])
        self.assertEqual(outcome(self.model(script, 5).ask, "问")[:2], (None, "答"))
        self.assertEqual([self.waits[0], self.waits[1], self.waits[4]], [7.25, 600.0, 90.0])
        self.assertTrue(2.0 <= self.waits[2] <= 4.0 and 4.0 <= self.waits[3] <= 8.0, self.waits)

    def test_a_pause_beyond_ten_minutes_is_reported_instead_of_waited_for(self) -> None:
        for asked, shown in ((601.0, "601"), (3600.0, "3600"), (float("inf"), "inf")):
            for before in (0, 1):
                with self.subTest(asked, before=before):
                    self.waits.clear()
                    script = Script(evaluated=[Fault("reset")] * before + [Fault("HTTP 429: slow", 429, asked)])
                    kind, message, _ = outcome(self.model(script).ask, "问")
                    tries = "2 tries" if before else "1 try"
                    self.assertEqual(
                        (kind, message),
                        (
                            ProviderError,
                            f"{EVALUATED}, {tries}: HTTP 429: slow. It asks for a pause of {shown} s. {WAIT}",
                        ),
                    )
                    self.assertEqual(len(self.waits), before)

    def test_retry_after_is_read_as_seconds_or_as_a_date(self) -> None:
        for header, seconds in (
            *(("0", 0.0), ("1", 1.0), ("1.5", 1.5), (" 20 ", 20.0), ("-5", 0.0), ("nan", 0.0)),
            *(("", None), ("soon", None), ("1 s", None), ("Wed, 40 Oct 2015 07:28:00 GMT", None)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ):
            with self.subTest(header):
                self.assertEqual(pause_asked(header), seconds)
        in_a_while = pause_asked(email.utils.formatdate(time.time() + 100_000, usegmt=True)) or 0.0
        self.assertTrue(90_000 < in_a_while <= 100_000, in_a_while)

    @settings(deadline=None)
    @given(
        st.text(max_size=30) | st.from_regex(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{1,5} \d\d:\d\d:\d\d [-+]?\w{3,4}")
    )
    def test_no_retry_after_is_too_odd_to_be_read_or_ignored(self, header: str) -> None:
        self.assertGreaterEqual(pause_asked(header) or 0.0, 0.0)


class ThrottleTest(Asking):
    """A refusal for throttling costs no try: it is waited out, and ends a call after ten minutes of nothing else."""

    SLOW = Fault("HTTP 429: slow", 429)

    def test_throttled_calls_are_answered_whatever_the_retries(self) -> None:
        for slow in (
            self.SLOW,
            provider_fault(429, {"error": {"message": "slow"}}),
            provider_fault(None, {"error": {"code": "rate_limit_exceeded", "message": "slow"}}),
            dump({"error": {"code": 429, "message": "slow"}}),
            dump({"choices": None, "error": {"code": "429", "message": "slow"}}),
        ):
            with self.subTest(slow):
                self.waits.clear()
                script = Script(evaluated=[*[slow] * 5, "答"])
                self.assertEqual(outcome(self.model(script, 0).ask, "问")[:2], (None, "答"))
                for wait, most in zip(self.waits, (1.0, 2.0, 4.0, 8.0, 16.0), strict=True):
                    self.assertTrue(most / 2 <= wait <= most, self.waits)

    def test_faults_between_refusals_count_by_themselves(self) -> None:
        fault = Fault("reset")
        script = Script(evaluated=[self.SLOW, fault, self.SLOW, self.SLOW, fault, self.SLOW, fault])
        kind, message, _ = outcome(self.model(script, 2).ask, "问")
        self.assertEqual((kind, message), (ProviderError, f"{EVALUATED}, 7 tries: reset. {RESUME}"))

    def test_ten_minutes_of_nothing_else_end_the_call(self) -> None:
        provider = Provider(lambda role, prompt: dump({"error": {"code": 429, "message": "slow"}}))
        channel = Channel(a_role(), provider.connect, 3, 8, self.pause, lambda: self.now)
        kind, message, said = outcome(ChatModel(channel).ask, "问")
        tries, gone = len(self.waits) + 1, sum(self.waits)
        self.assertTrue(540 <= gone <= 600, self.waits)
        self.assertEqual(
            (kind, message),
            (
                ProviderError,
                f"{EVALUATED}, {tries} tries: HTTP 429: slow. It has answered nothing else for {gone:.0f} s. {WAIT}",
            ),
        )
        self.assertIn(f"{EVALUATED}: HTTP 429: slow; throttled to 7 of 8 at once, asks again in", said)

    def test_while_others_of_the_role_are_answered_a_call_waits_on(self) -> None:
        left = [40]

        def answer(role: RoleName, prompt: str) -> str | bytes:
            left[0] -= 1
            channel.gate.succeeded(self.now)  # another call's
            return dump({"error": {"code": 429, "message": "slow"}}) if left[0] else "答"

        channel = Channel(a_role(), Provider(answer).connect, 0, 8, self.pause, lambda: self.now)
        self.assertEqual(outcome(ChatModel(channel).ask, "问")[:2], (None, "答"))
        self.assertGreater(sum(self.waits), 1000)

    def test_a_pause_above_a_minute_is_told_and_short_ones_every_ten_seconds(self) -> None:
        slow = [Fault("slow", 429, pause) for pause in (1.0, 5.0, 61.0, 62.0, 3.0)]
        _, _, said = outcome(self.model(Script(evaluated=[*slow, "答"])).ask, "问")
        told = re.findall(r"asks again in ([0-9.]+) s", said)
        waits = [f"{wait:.1f}" for wait in self.waits]
        self.assertEqual(told, [waits[0], waits[2], waits[3], waits[4]])

    def test_an_exhausted_quota_is_no_throttling(self) -> None:
        for mark in ("insufficient_quota", "exceeded_current_quota_error"):
            script = Script(evaluated=[provider_fault(429, {"error": {"code": mark, "message": "empty"}})])
            kind, message, _ = outcome(self.model(script).ask, "问")
            self.assertEqual((kind, self.waits), (ProviderError, []))
            self.assertIn(f"1 try: HTTP 429 {mark}: empty. Top up the account", message)

    def test_a_refusal_takes_one_turn_away_and_successes_give_it_back(self) -> None:
        gate = Gate(64)
        for _ in range(48):
            gate.throttled()
        self.assertEqual(gate.turns.limit, 64 - 48)
        for _ in range(20 * 4 - 1):
            gate.succeeded(0.0)
        self.assertEqual(gate.turns.limit, 16 + 3)
        gate.succeeded(0.0)
        self.assertEqual(gate.turns.limit, 16 + 4)
        gate.throttled()
        for _ in range(19):
            gate.succeeded(0.0)
        self.assertEqual(gate.turns.limit, 16 + 3)

    def test_the_limit_is_never_below_one_nor_above_the_parallelism(self) -> None:
        gate = Gate(3)
        for _ in range(10):
            gate.throttled()
        self.assertEqual(gate.turns.limit, 1)
        for _ in range(2 + 4):  # twice the limit where that is less than 20
            self.assertLess(gate.turns.limit, 3)
            gate.succeeded(0.0)
        for _ in range(100):
            gate.succeeded(0.0)
        self.assertEqual(gate.turns.limit, 3)

    def test_waits_are_spent_aside(self) -> None:
        inside = []

        @contextlib.contextmanager
        def aside() -> Iterator[None]:
            inside.append("out")
            yield
            inside.append("back")

        channel = self.model(Script(evaluated=[self.SLOW, Fault("reset"), "答"])).channel
        outcome(ChatModel(channel, aside=aside).ask, "问")
        self.assertEqual(inside, ["out", "back"] * 2)


class JudgeTest(Asking):
    @staticmethod
    def read(reply: str) -> str:
        if reply.startswith("坏"):
            raise UnreadableReply("it is bad")
        return reply.upper()

    def test_four_tries_at_a_readable_judgment_whatever_the_transport_retries(self) -> None:
        fault, head = Fault("reset"), "judge model 'm' at https://api.example.com/v1"
        gone = (
            f"{head}: no readable judgment in 4 tries; of the last one, it is bad: '坏4'. "
            "The same command asks once more"
        )
        broken = f"{head}, 2 tries: reset. {RESUME}"
        refused = f"{head}, 1 try: HTTP 401: no. {ADVICE[401]}"
        for replies, retries, kind, result in (
            (["a"], 0, None, "('A', 'a')"),
            (["坏1", "坏2", "a"], 0, None, "('A', 'a')"),
            (["坏1", "坏2", "坏3", "a"], 0, None, "('A', 'a')"),
            (["坏1", "坏2", "坏3", "坏4"], 0, ModelOutputError, gone),
            (["坏1", "坏2", "坏3", "坏4"], 9, ModelOutputError, gone),
            ([fault, "坏1", fault, "坏2", fault, "坏3", fault, "a"], 1, None, "('A', 'a')"),
            ([fault, "坏1", fault, "坏2", fault, "坏3", fault, "坏4"], 1, ModelOutputError, gone),
            (["坏1", b"", "坏2", fault, fault], 1, ProviderError, broken),
            (["坏1", provider_fault(401, {"message": "no"})], 3, ProviderError, refused),
        ):
            with self.subTest(replies, retries=retries):
                script = Script(judge=cast(Sequence[Reply], replies))
                model = self.model(script, retries, a_role("judge"))
                self.assertEqual(outcome(model.ask_judge, "问", self.read)[:2], (kind, result))
                self.assertEqual(script.left["judge"], [])

    def test_each_unreadable_judgment_is_told_and_the_last_one_shown_in_part(self) -> None:
        script = Script(judge=["坏" * 300] * 4)
        kind, message, said = outcome(self.model(script, 0, a_role("judge")).ask_judge, "问", self.read)
        self.assertEqual((kind, message.count("坏")), (ModelOutputError, 200))
        self.assertEqual(
            said.splitlines(),
            [
                f"judge model 'm' at https://api.example.com/v1: judgment {n} of 4 is unreadable: it is bad"
                for n in (1, 2, 3, 4)
            ],
        )

    def test_a_fault_of_the_reader_itself_is_not_taken_for_a_bad_reply(self) -> None:
        def broken(reply: str) -> str:
            raise ValueError(reply)

        with self.assertRaisesRegex(ValueError, "^答$"):
            self.model(Script(judge=["答"]), role=a_role("judge")).ask_judge("问", broken)


class MessageTest(Asking):
    def test_advice_names_what_the_role_at_fault_is_set_by(self) -> None:
        own = {f"LEXPILOT_{word}_API_KEY": "k" for word in WORDS.values()}
        users = PARAMETER.replace("--model (LEXPILOT_", "--user-model (LEXPILOT_USER_").replace("--eval-", "--user-")
        judges = PARAMETER.replace("--model (LEXPILOT_", "--judge-model (LEXPILOT_JUDGE_").replace(
            "--eval-", "--judge-"
        )
        judges = judges.replace("--temperature", "--judge-temperature")
        rows: Sequence[tuple[RoleName, int, dict[str, str], str]] = (
            ("evaluated", 400, {}, PARAMETER),
            ("user", 400, {}, users),
            ("judge", 400, {}, judges),
            ("judge", 422, {}, judges),
            ("evaluated", 404, {}, "Check --model (LEXPILOT_MODEL) and the base URL, which often ends in /v1"),
            ("user", 404, {}, "Check --user-model (LEXPILOT_USER_MODEL) and the base URL, which often ends in /v1"),
            ("judge", 404, {}, "Check --judge-model (LEXPILOT_JUDGE_MODEL) and the base URL, which often ends in /v1"),
            ("user", 401, {}, ADVICE[401]),
            ("user", 401, own, ADVICE[401].replace("OPENAI", "LEXPILOT_USER")),
            ("judge", 401, own, ADVICE[401].replace("OPENAI", "LEXPILOT_JUDGE")),
            ("judge", 402, {}, ADVICE[402]),
            ("judge", 403, {}, ADVICE[403]),
            ("judge", 410, {}, RESUME),
        )
        for name, status, env, advice in rows:
            with self.subTest(role=name, status=status, env=env):
                role = a_role(name, env)
                script = Script(**{name: [provider_fault(status, {"error": {"message": "看这里"}})]})
                self.assertEqual(
                    outcome(self.model(script, 3, role).ask, "问"),
                    (
                        ProviderError,
                        f"{name} model 'm' at https://api.example.com/v1, 1 try: HTTP {status}: 看这里. {advice}",
                        "",
                    ),
                )

    def test_a_refusal_speaks_in_the_providers_words_on_one_line_of_bounded_length(self) -> None:
        for error, words in (
            ({"error": {"message": "a\n  b\tc"}}, "HTTP 400: a b c"),
            ({"error": {"message": "长" * 500}}, "HTTP 400: " + "长" * 500),
            ({"error": {"code": "c", "type": "t", "param": "p", "message": "m"}}, "HTTP 400 c t: m"),
            ({"error": {"code": None, "type": "", "detail": "d"}}, "HTTP 400: d"),
            ({"error": {"status_msg": "满"}}, 'HTTP 400: {"status_msg": "满"}'),
            ({"error": "text"}, "HTTP 400: text"),
            ({"detail": [{"loc": ["body"], "msg": "field required"}]}, 'HTTP 400: [{"loc": ["body"], "msg": "field required"}]'),
            ("<html>\n<body>", "HTTP 400: <html> <body>"),
            ("", "HTTP 400: without a word"),
            (["a"], 'HTTP 400: ["a"]'),
            (None, "HTTP 400: null"),
        ):  # fmt: skip
            with self.subTest(error):
                self.assertEqual(str(provider_fault(400, error)), words)

    @settings(deadline=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(st.sampled_from(["error", "code", "type", "message", "detail"]), inner)
            ),
        ),
        st.integers(300, 599),
    )
    def test_no_body_of_a_refusal_is_too_odd_to_be_told(self, value: Any, status: int) -> None:
        fault = provider_fault(status, value)
        self.assertEqual(fault.status, status)
        self.assertLessEqual(status < 500 and status not in (408, 409, 429), fault.final)

    @settings(deadline=None)
    @given(st.binary() | st.text().map(str.encode) | st.dictionaries(st.text(), st.text() | st.none()).map(dump))
    def test_a_body_is_a_json_object_or_a_fault(self, raw: bytes) -> None:
        try:
            found = completion_of(raw)
        except Fault as fault:
            self.assertLess(len(str(fault)), 2100)
        else:
            self.assertEqual(found, json.loads(raw.decode("utf-8-sig")))


class CredentialTest(Asking):
    SECRETS = (KEY, "alice", "hunter22", "signed")
    ECHO = " ".join(SECRETS)
    HIDDEN = "*** *** *** ***"
    WHO = "judge model 'm' at https://api.example.com/v1"

    def model_that_hears(self, *replies: Reply) -> ChatModel:
        url = "https://alice:hunter22@api.example.com/v1?sig=signed#signed"
        return self.model(Script(judge=replies), len(replies) - 1, a_role("judge", {"LEXPILOT_JUDGE_BASE_URL": url}))

    def test_no_message_repeats_a_credential_that_the_provider_echoes(self) -> None:
        for what, reply, kind, words in (
            ("refusal", provider_fault(401, {"error": {"message": self.ECHO}}), ProviderError, f"HTTP 401: {self.HIDDEN}"),
            ("code", provider_fault(400, {"error": {"code": KEY, "message": "no"}}), ProviderError, "HTTP 400 ***: no"),
            ("page", self.ECHO.encode(), ProviderError, f"the answer is not JSON: '{self.HIDDEN}'"),
            ("error in 200", dump({"error": self.ECHO}), ProviderError, f"an error in the answer: {self.HIDDEN}"),
            ("no completion", dump({"x": KEY}), ModelOutputError, 'the reply is rejected: it holds no completion: {"x": "***"}'),
            ("finish reason", body("答", KEY), ModelOutputError, "the reply is rejected: finish_reason is '***': not a normal end"),
            ("connection", Fault(f"cannot reach https://alice:hunter22@h?sig=signed {KEY}"), ProviderError, "cannot reach https://***@h?sig=*** ***"),
        ):  # fmt: skip
            with self.subTest(what):
                self.waits.clear()
                model = self.model_that_hears(reply, reply)
                got, message, said = outcome(model.ask, "问")
                self.assertEqual((got, message.partition(": ")[2].partition(". ")[0]), (kind, words))
                notices = [f"{self.WHO}: {words}; try 2 of 2 in {wait:.1f} s" for wait in self.waits]
                self.assertEqual(said.splitlines(), notices)

    def test_a_credential_is_hidden_however_it_is_spelled_and_wherever_the_text_is_cut(self) -> None:
        key = "sk-'back\\slash\"-key"
        url = "https://al%40ice:hunt%3Aer22@api.example.com/v1?sig=a%2Fb%2Fc"
        role = a_role(env={"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url})
        basic = base64.b64encode(b"al@ice:hunt:er22").decode()
        for secret in (
            key,
            repr(key)[1:-1],
            json.dumps(key)[1:-1],
            "al%40ice",
            "al@ice",
            "hunt:er22",
            "a%2Fb%2Fc",
            "a/b/c",
            basic,
        ):
            for before in (0, 370, 390, 399):
                self.assertEqual(role.shown("x" * before + secret), ("x" * before + "***")[:400])

    def test_no_control_character_of_a_provider_reaches_the_terminal(self) -> None:
        self.assertEqual(a_role().shown("a\x1b[31mb\x07\x9bc\u3000d"), "a [31mb  c\u3000d")

    def test_the_last_unreadable_judgment_is_shown_without_a_credential(self) -> None:
        def read(reply: str) -> str:
            raise UnreadableReply(f"its label is {reply}")

        _, message, _ = outcome(self.model_that_hears(*[self.ECHO] * 4).ask_judge, "问", read)
        self.assertIn(f"its label is {self.HIDDEN}: '{self.HIDDEN}'", message)

    def test_no_notice_about_a_judgment_repeats_a_credential(self) -> None:
        def read(reply: str) -> str:
            if reply == self.ECHO:
                raise UnreadableReply(f"its label is {reply}")
            return reply

        model = self.model_that_hears(self.ECHO, "答")
        self.assertEqual(
            outcome(model.ask_judge, "问", read),
            (None, "('答', '答')", f"{self.WHO}: judgment 1 of 4 is unreadable: its label is {self.HIDDEN}\n"),
        )

    def test_a_placeholder_key_of_a_local_server_blots_out_no_words(self) -> None:
        role = a_role(env={"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "https://api.example.com/v1?v=1"})
        fault = provider_fault(400, {"message": "max 1 text"})
        _, message, _ = outcome(self.model(Script(evaluated=[fault]), role=role).ask, "问")
        self.assertEqual(message, failure(EVALUATED, 1, "HTTP 400: max 1 text"))


class RequestTest(Asking):
    def test_every_try_of_every_role_is_one_user_message_that_asks_for_one_choice(self) -> None:
        prompt = " 问 {x} %s \\n\n\u2028😀 "
        for name in ROLE_NAMES:
            with self.subTest(name):
                role = make_role(name, "厂/m:1", 0.25, 77, 30.0, GENERAL)
                replies: list[Reply] = [b"", "答"]
                script = Script(**{name: replies})
                self.assertEqual(outcome(self.model(script, 1, role).ask, prompt)[1], "答")
                request = {
                    "model": "厂/m:1",
                    "messages": [{"role": "user", "content": prompt}],
                    "temperature": 0.25,
                    "max_tokens": 77,
                    "n": 1,
                }
                self.assertEqual(script.requests, [request, request])

    def test_the_first_of_several_choices_is_the_answer(self) -> None:
        choices = [{"finish_reason": "stop", "message": {"content": text}} for text in ("一", "二")]
        self.assertEqual(self.model(Script(evaluated=[dump({"choices": choices})])).ask("问"), "一")

    def test_a_client_is_made_once_for_all_calls(self) -> None:
        made = []
        script = Script(evaluated=["一", "二"])

        def connect(role: Role) -> Callable[[Mapping[str, Any]], bytes]:
            made.append(role)
            return script.connect(role)

        model = ChatModel(Channel(a_role(), connect, 0))
        self.assertEqual((model.ask("问"), model.ask("问"), made), ("一", "二", [a_role()]))


class Environment(Asking):
    """A test whose process has no proxy, certificate or `openai` variables but those it sets."""

    def setUp(self) -> None:
        super().setUp()
        saved = dict(os.environ)
        self.addCleanup(os.environ.update, saved)
        self.addCleanup(os.environ.clear)
        for name in saved:
            if name.upper().endswith(("_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")) or name.startswith("OPENAI_"):
                del os.environ[name]


class NoClientTest(Environment):
    def test_a_missing_key_names_the_variables_that_it_could_come_from(self) -> None:
        for name, word in WORDS.items():
            with self.subTest(name):
                role = a_role(name, {"OPENAI_API_KEY": " "})
                self.assertEqual(
                    outcome(openai_client, role),
                    (
                        SettingsError,
                        f"{name} model 'm' at https://api.example.com/v1: no key; set LEXPILOT_{word}_API_KEY or "
                        "OPENAI_API_KEY (for a local server without keys, any word)",
                        "",
                    ),
                )

    def test_a_missing_package_names_the_command_that_installs_it(self) -> None:
        saved = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "openai"}
        self.addCleanup(sys.modules.update, saved)
        self.addCleanup(sys.modules.pop, "openai")
        cast(dict[str, Any], sys.modules)["openai"] = None  # makes its import fail
        kind, message, _ = outcome(openai_client, a_role())
        self.assertEqual((kind, SettingsError.exit_status), (SettingsError, 1))
        self.assertRegex(message, "openai.*; run: python -m pip install -r requirements.txt$")


Answer = Callable[["Handler"], None]


def respond(status: int, content: object, **headers: str) -> Answer:
    """An answer with a JSON body, or with bytes as they are."""

    def send(handler: "Handler") -> None:
        raw = content if isinstance(content, bytes) else dump(content)
        handler.send_response(status)
        names = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        for name, value in {**names, **{name.replace("_", "-"): value for name, value in headers.items()}}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return send


def cut(handler: "Handler") -> None:
    """Half a body, then the end of the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(body("答")[:30])


def closed(handler: "Handler") -> None:
    """No answer at all."""


def reset(handler: "Handler") -> None:
    """The connection is torn down, as by a killed server."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.close(handler.connection.detach())


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((f"{self.command} {self.path}", self.headers.get("Authorization"), raw))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


class KeepingOpen(Handler):
    protocol_version = "HTTP/1.1"


class Server(ThreadingHTTPServer):
    """Gives its answers in turn, the last one for ever, and remembers what it was asked."""

    def __init__(self, handler: type[Handler] = Handler) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.answers: list[Answer] = []
        self.seen: list[tuple[str, str | None, bytes]] = []
        self.connections = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()


GOOD = respond(200, body("答"))
PATH = "POST /v1/chat/completions"

# A throwaway certificate of 127.0.0.1 with its key, which nobody trusts.
SELF_SIGNED = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyM8rvCpSsDqTevgI
v9A3D809XyQsENmlJ/4ktcGf3uKhRANCAATv8ByviLiyb2wyfyHx/T8mBWhJqB5u
5wtN9yCuhudXk3Rf/ev3iP7OO2hBHdaTFDpdhLRu/W/HAr8GtZ3GbcE6
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBkDCCATagAwIBAgIUSpLk8ARKqXNVjKtW7nIoJGH8dM0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEzMDExMzkxNVoYDzIxMjYxMTA2
MTEzOTE1WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATv8ByviLiyb2wyfyHx/T8mBWhJqB5u5wtN9yCuhudXk3Rf/ev3iP7O
O2hBHdaTFDpdhLRu/W/HAr8GtZ3GbcE6o2QwYjAdBgNVHQ4EFgQUJZG4mXi6rKSF
DkaIuXTqnJW9UUQwHwYDVR0jBBgwFoAUJZG4mXi6rKSFDkaIuXTqnJW9UUQwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUC
IFOaBN2XyTXLF+yxRdDm8h7poevdVEPlSG2fVu9RjmuqAiEAsidFBSM6WNuOnZWW
t1QRtTKO+CuvGZR3g8CQAZe5560=
-----END CERTIFICATE-----
"""


@unittest.skipUnless(importlib.util.find_spec("openai"), "needs the openai package")
class WireTest(Environment):
    """The real client against a server on this machine."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.start(Server())
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.who = f"evaluated model 'm' at http://{self.host}/v1"
        self.wired = self.client()

    def start(self, server: Server) -> Server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server

    def client(self, url: str = "", retries: int = 1, timeout: float = 30.0) -> ChatModel:
        role = a_role(env={"OPENAI_BASE_URL": url or f"http://{self.host}/v1"}, timeout=timeout)
        return ChatModel(Channel(role, openai_client, retries, 8, self.pause, lambda: self.now))

    def ask(
        self, *answers: Answer, model: ChatModel | None = None, prompt: str = "问"
    ) -> tuple[type[LexPilotError] | None, str]:
        self.server.answers, self.server.seen = [*answers], []
        self.waits.clear()
        return outcome((model or self.wired).ask, prompt)[:2]

    def test_one_request_has_the_path_the_key_and_the_five_fields_and_brings_the_answer(self) -> None:
        text = "可以。\n😀\u2028{}\\ é\u3000\x7f"
        self.assertEqual(self.ask(respond(200, body(text)), prompt=text), (None, text))
        ((line, authorization, raw),) = self.server.seen
        self.assertEqual((line, authorization), (PATH, f"Bearer {KEY}"))
        self.assertEqual(
            json.loads(raw),
            {"model": "m", "messages": [{"role": "user", "content": text}], "temperature": 0.7, "max_tokens": 64, "n": 1},
        )  # fmt: skip

    def test_the_shape_of_a_good_answer_beyond_its_choice_does_not_matter(self) -> None:
        for what, answer in (
            ("raw UTF-8", respond(200, dump({"choices": [{"finish_reason": "stop", "message": {"content": "答"}}]}))),
            ("a byte-order mark", respond(200, b"\xef\xbb\xbf" + body("答"))),
            ("gzip", respond(200, gzip.compress(body("答")), Content_Encoding="gzip")),
            ("plain text type", respond(200, body("答"), Content_Type="text/plain")),
            ("page type", respond(200, body("答"), Content_Type="text/html; charset=gbk")),
            ("stream type", respond(200, body("答"), Content_Type="text/event-stream")),
            ("status 201", respond(201, body("答"))),
            ("odd fields", respond(200, dump({**json.loads(body("答")), "timings": {}, "usage": None, "error": None}))),
        ):
            with self.subTest(what):
                self.assertEqual(self.ask(answer), (None, "答"))
                self.assertEqual(len(self.server.seen), 1)

    def test_a_200_without_an_answer_is_told_from_its_body(self) -> None:
        for what, raw, kind, passing, words in BODIES:
            for content_type in ("application/json", "text/html"):
                with self.subTest(what, content_type=content_type):
                    tries = 2 if passing else 1
                    told = self.ask(respond(200, raw, Content_Type=content_type))
                    self.assertEqual(told, (kind, failure(self.who, tries, words)))
                    self.assertEqual(len(self.server.seen), tries)

    def test_a_refusal_is_told_in_the_providers_words(self) -> None:
        context = "request (11525 tokens) exceeds the available context size (8192 tokens), try increasing it"
        for what, status, content, tries, words in (
            ("llama.cpp", 400, {"error": {"code": 400, "message": context, "type": "exceed_context_size_error", "n_ctx": 8192}}, 1, f"HTTP 400 exceed_context_size_error: {context}"),
            ("llama-cpp-python", 400, {"error": {"message": "too long", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}, 1, "HTTP 400 context_length_exceeded invalid_request_error: too long"),
            ("FastAPI", 400, {"detail": "unknown model"}, 1, "HTTP 400: unknown model"),
            ("vLLM", 400, {"object": "error", "message": "too long", "type": "BadRequestError", "param": None, "code": 400}, 1, "HTTP 400 BadRequestError: too long"),
            ("DeepSeek", 400, {"error": {"message": "too long", "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}}, 1, "HTTP 400 invalid_request_error: too long"),
            ("numeric text code", 400, {"error": {"code": "1210", "message": "参数有误"}}, 1, "HTTP 400 1210: 参数有误"),
            ("temperature", 400, {"error": {"message": "temperature must be 1", "param": "temperature"}}, 1, "HTTP 400: temperature must be 1"),
            ("content filter", 400, {"error": {"code": "content_filter", "message": "filtered", "status": 400}}, 1, "HTTP 400 content_filter: filtered"),
            ("content inspection", 400, {"error": {"code": "data_inspection_failed", "message": "inappropriate"}}, 1, "HTTP 400 data_inspection_failed: inappropriate"),
            ("token field", 400, {"error": {"message": FIELD, "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}}, 1, f"HTTP 400 unsupported_parameter invalid_request_error: {FIELD}"),
            ("demanded field", 400, {"error": {"code": "invalid_parameter_error", "param": None, "message": THINKING, "type": "invalid_request_error"}}, 1, f"HTTP 400 invalid_parameter_error invalid_request_error: {THINKING}"),
            ("no such model, as 400", 400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}}, 1, "HTTP 400 invalid_request_error: Model Not Exist"),
            ("no such model, flat", 400, {"code": 20012, "message": "Model does not exist", "data": None}, 1, "HTTP 400 20012: Model does not exist"),
            ("bad key", 401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}, 1, "HTTP 401 authentication_error: Invalid API Key"),
            ("no money", 402, {"error": {"message": "Insufficient Balance"}}, 1, "HTTP 402: Insufficient Balance"),
            ("content, not credentials", 403, {"error": {"message": "input was flagged"}}, 1, "HTTP 403: input was flagged"),
            ("no such model", 404, {"error": {"message": "no model m", "code": "model_not_found"}}, 1, "HTTP 404 model_not_found: no model m"),
            ("page", 413, b"<html>\r\n<h1>413</h1></html>", 1, "HTTP 413: <html> <h1>413</h1></html>"),
            ("unexpected field", 422, {"detail": "Unexpected fields: n"}, 1, "HTTP 422: Unexpected fields: n"),
            ("empty body", 405, b"", 1, "HTTP 405: without a word"),
            ("not UTF-8", 400, b'"\xff"', 1, 'HTTP 400: "\ufffd"'),
            ("request timeout", 408, {"error": {"message": "late"}}, 2, "HTTP 408: late"),
            ("conflict", 409, {"error": {"message": "again"}}, 2, "HTTP 409: again"),
            ("quota", 429, {"error": {"message": "empty", "code": "insufficient_quota"}}, 1, "HTTP 429 insufficient_quota: empty"),
            ("quota by type", 429, {"error": {"message": "empty", "type": "exceeded_current_quota_error"}}, 1, "HTTP 429 exceeded_current_quota_error: empty"),
            ("loading", 503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, 2, "HTTP 503 unavailable_error: Loading model"),
            ("overloaded", 529, {"error": {"message": "Overloaded", "type": "overloaded_error"}}, 2, "HTTP 529 overloaded_error: Overloaded"),
            ("text", 500, b"Internal Server Error", 2, "HTTP 500: Internal Server Error"),
        ):  # fmt: skip
            with self.subTest(what):
                content_type = "text/plain" if isinstance(content, bytes) else "application/json"
                told = self.ask(respond(status, content, Content_Type=content_type))
                kind = BlockedError if what.startswith("content ") else ProviderError
                self.assertEqual(told, (kind, failure(self.who, tries, words)))
                self.assertEqual(len(self.server.seen), tries)

    def test_a_status_below_500_gets_one_request_unless_it_may_pass(self) -> None:
        for status in (status for status in range(400, 600) if status != 429):
            with self.subTest(status):
                tries = 2 if status in (408, 409) or status >= 500 else 1
                told = self.ask(respond(status, {"error": {"message": "so"}}, x_should_retry="true"))
                self.assertEqual(told, (ProviderError, failure(self.who, tries, f"HTTP {status}: so")))
                self.assertEqual(len(self.server.seen), tries)

    def test_retries_are_the_adapters_alone(self) -> None:
        for retries in (0, 1, 3):
            for what, answer in (("500", respond(500, {})), ("closed", closed), ("blank", respond(200, b""))):
                with self.subTest(what, retries=retries):
                    self.ask(answer, model=self.client(retries=retries))
                    self.assertEqual(len(self.server.seen), retries + 1)

    def test_a_provider_that_recovers_brings_the_answer(self) -> None:
        faults = [
            respond(503, {}),
            respond(529, {}),
            reset,
            cut,
            closed,
            respond(200, b""),
            respond(200, dump({"error": {"code": 429}})),
        ]
        self.assertEqual(self.ask(*faults, GOOD, model=self.client(retries=7)), (None, "答"))
        self.assertEqual((len(self.server.seen), len(self.waits)), (8, 7))

    def test_retry_after_of_a_refused_call_is_kept(self) -> None:
        soon = email.utils.formatdate(time.time() + 500, usegmt=True)
        for status, header, least, most in (
            (429, "1", 1.0, 1.0),
            (429, "7", 7.0, 7.0),
            (503, "300", 300.0, 300.0),
            (429, soon, 60.0, 500.0),
            (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0.5, 1.0),
            (429, "soon", 0.5, 1.0),
        ):
            with self.subTest(status=status, header=header):
                self.assertEqual(self.ask(respond(status, {}, Retry_After=header), GOOD), (None, "答"))
                (wait,) = self.waits
                self.assertTrue(least <= wait <= most, wait)

    def test_a_reply_that_trickles_for_longer_than_the_timeout_is_waited_for(self) -> None:
        raw = body("答")

        def trickle(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(8 + len(raw)))
            handler.end_headers()
            for _ in range(8):
                handler.wfile.write(b" ")
                time.sleep(0.1)  # the silence itself is what is tried: shorter than the timeout, in sum longer
            handler.wfile.write(raw)

        self.assertEqual(self.ask(trickle, model=self.client(retries=0, timeout=0.5)), (None, "答"))

    def test_retry_after_beyond_ten_minutes_stops_at_once(self) -> None:
        for header, shown in (("3600", "3600"), ("Sat, 01 Jan 2200 00:00:00 GMT", r"\d{9,}")):
            with self.subTest(header):
                kind, message = self.ask(respond(429, {"error": {"message": "slow"}}, Retry_After=header), GOOD)
                self.assertEqual((kind, len(self.server.seen), self.waits), (ProviderError, 1, []))
                self.assertRegex(
                    message, rf", 1 try: HTTP 429: slow\. It asks for a pause of {shown} s\. The same command"
                )

    def test_a_broken_connection_is_told_with_its_cause(self) -> None:
        for what, answer, cause in (
            ("reset", reset, "reset|closed"),
            ("closed", closed, "disconnected without sending a response"),
            ("cut", cut, "closed connection without sending complete message body"),
            ("not gzip", respond(200, body("答"), Content_Encoding="gzip"), "decompressing"),
            ("not HTTP", lambda handler: handler.wfile.write(b"\x15\x03\x01 nonsense\r\n\r\n"), "illegal|malformed"),
        ):
            with self.subTest(what):
                kind, message = self.ask(cast(Answer, answer))
                self.assertEqual((kind, len(self.server.seen)), (ProviderError, 2))
                self.assertTrue(message.startswith(f"{self.who}, 2 tries: Connection error: "), message)
                self.assertTrue(message.endswith(f". {RESUME}"), message)
                self.assertRegex(message, cause)

    def test_a_port_where_nobody_listens_is_tried_again(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            kind, message = self.ask(GOOD, model=self.client(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"))
        self.assertEqual((kind, len(self.waits), self.server.seen), (ProviderError, 1, []))
        self.assertRegex(message, r"/v1, 2 tries: Connection error: .*refused")

    def test_a_silent_server_is_given_up_after_the_timeout(self) -> None:
        released = threading.Event()
        self.addCleanup(released.set)
        # Bounded, so that a client without a timeout fails here instead of hanging.
        told = self.ask(lambda handler: cast(None, released.wait(20)), model=self.client(timeout=0.2))
        self.assertEqual(told, (ProviderError, failure(self.who, 2, "no answer within 0.2 s (--timeout)")))
        self.assertEqual(len(self.server.seen), 2)

    def test_query_and_user_information_reach_the_server_and_no_message(self) -> None:
        refused = respond(401, {"error": {"message": f"{KEY} alice:hunter22 signed"}})
        for url, line, authorization in (
            (f"http://{self.host}/v1/?sig=signed&api-version=2024-10-21", f"{PATH}?sig=signed&api-version=2024-10-21", f"Bearer {KEY}"),
            (f"http://{self.host}/v1/chat/completions?sig=signed#x", f"{PATH}?sig=signed", f"Bearer {KEY}"),
            (f"http://{self.host}?q=a%2Fb", "POST /chat/completions?q=a%2Fb", f"Bearer {KEY}"),
            (f"http://alice:hunter22@{self.host}/v1", PATH, "Basic YWxpY2U6aHVudGVyMjI="),
        ):  # fmt: skip
            with self.subTest(url):
                model = self.client(url)
                self.assertEqual(self.ask(GOOD, model=model), (None, "答"))
                self.assertEqual([seen[:2] for seen in self.server.seen], [(line, authorization)])
                message = self.ask(refused, model=model)[1]
                for secret in {KEY, *(word for word in ("alice", "hunter22", "signed") if word in url)}:
                    self.assertNotIn(secret, message)

    def test_a_redirect_is_told_and_not_followed(self) -> None:
        other = self.start(Server())
        away = f"http://127.0.0.1:{other.server_port}/elsewhere"
        for status in (301, 302, 303, 307, 308):
            with self.subTest(status):
                told = self.ask(respond(status, b"", Location=away))
                self.assertEqual(told, (ProviderError, failure(self.who, 1, f"HTTP {status}: a redirect to {away}")))
                self.assertEqual([line for line, _, _ in self.server.seen], [PATH])
        self.assertEqual(other.seen, [])

    def test_an_untrusted_certificate_stops_at_once_and_is_named(self) -> None:
        server, url, _ = self.signed_server()
        kind, message = self.ask(GOOD, model=self.client(url, retries=3))
        self.assertEqual((kind, server.connections, server.seen, self.waits), (ProviderError, 1, [], []))
        self.assertRegex(message, r"/v1, 1 try: Connection error: .*CERTIFICATE_VERIFY_FAILED.*\. When that is mended")

    def test_a_certificate_that_the_surrounding_trusts_is_taken(self) -> None:
        server, url, pem = self.signed_server()
        server.answers = [GOOD]
        os.environ["SSL_CERT_FILE"] = str(pem)
        self.assertEqual(outcome(self.client(url).ask, "问")[:2], (None, "答"))

    def signed_server(self) -> tuple[Server, str, Path]:
        """A server with a certificate of its own, its address and the certificate's file."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pem = Path(folder.name) / "self-signed.pem"
        pem.write_text(SELF_SIGNED, encoding="ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server = Server()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return self.start(server), f"https://127.0.0.1:{server.server_port}/v1", pem

    def test_a_proxy_of_the_surrounding_is_used(self) -> None:
        os.environ["HTTP_PROXY"] = f"http://{self.host}"
        self.assertEqual(self.ask(GOOD, model=self.client("http://provider.invalid/v1")), (None, "答"))
        (seen,) = self.server.seen
        self.assertEqual(seen[:2], ("POST http://provider.invalid/v1/chat/completions", f"Bearer {KEY}"))

    def test_the_openai_clients_own_headers_are_sent(self) -> None:
        os.environ["OPENAI_ORG_ID"] = "our-group"
        names = ("OpenAI-Organization", "OpenAI-Project", "Content-Type")

        def echo(handler: Handler) -> None:
            respond(200, body(str([handler.headers[name] for name in names])))(handler)

        self.assertEqual(self.ask(echo, model=self.client()), (None, str(["our-group", None, "application/json"])))

    def test_a_connection_serves_one_call_after_another_whatever_they_come_to(self) -> None:
        server = self.start(Server(KeepingOpen))
        model = self.client(f"http://127.0.0.1:{server.server_port}/v1", retries=0)
        for answer, expected in ((GOOD, None), (respond(500, {}), ProviderError), (respond(200, b""), ProviderError)):
            server.answers = [answer]
            self.assertEqual(outcome(model.ask, "问")[0], expected)
        server.answers = [GOOD]
        self.assertEqual(outcome(model.ask, "问")[0], None)
        self.assertEqual((len(server.seen), server.connections), (4, 1))

    def test_a_surrounding_that_no_client_can_use_is_named_before_any_request(self) -> None:
        rows = [
            ("HTTPS_PROXY", "nonsense://127.0.0.1:9"),
            ("http_proxy", "http://127.0.0.1:port"),
            ("SSL_CERT_FILE", os.devnull + "/none.pem"),
        ]
        if not importlib.util.find_spec("socksio"):
            rows.append(("ALL_PROXY", "socks5://127.0.0.1:9"))
        for variable, value in rows:
            with self.subTest(variable):
                os.environ[variable] = value
                kind, message = self.ask(GOOD, model=self.client())
                del os.environ[variable]
                self.assertEqual((kind, self.server.seen), (SettingsError, []))
                self.assertTrue(message.startswith(f"{self.who}: no client can be made: "), message)
                self.assertTrue(message.endswith(f"; look at {variable}"), message)

    def test_one_client_serves_many_threads(self) -> None:
        self.server.answers = [lambda handler: respond(200, body(handler.headers["Content-Length"]))(handler)]
        answers: dict[int, str] = {}

        def ask(length: int) -> None:
            answers[length] = self.wired.ask("a" * length)

        self.assertTrue(self.wired.channel.send)
        threads = [threading.Thread(target=ask, args=(length,)) for length in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        empty = int(answers[0])
        self.assertEqual(answers, {length: str(empty + length) for length in range(8)})
