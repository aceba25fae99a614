"""The model adapter: a role and its endpoint, the `openai` client behind it, and the one retry loop around a call.

The evaluated model, the User Model and the judge are three roles, each a frozen object of its own. A call is one user
message that asks for one choice. What may pass is tried again here and nowhere else (the client's own retries are off);
what cannot pass gets one request. Throttling is no fault: it is waited out, and lowers the number of requests at once.
No text that stands for a failure ever comes back: `ask` returns an answer or raises.
"""

import base64
import contextlib
import hashlib
import json
import math
import os
import random
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from errors import BlockedError, LexPilotError, ModelOutputError, ProviderError, SettingsError, notice
from parallel import Turns
from records import Answer, Block, Blocked, Call, Outcome, RoleName
from replies import (
    FilteredReply,
    UnreadableReply,
    completion_text,
    decode_utf8,
    finish_reason_of,
    named_model,
    storable,
    tokens_of,
    usage_of,
)

T = TypeVar("T")

# ----------------------------------------------------------------------------------------------------------------------
# Roles

VARIABLE_WORD: dict[RoleName, str] = {"evaluated": "EVAL", "user": "USER", "judge": "JUDGE"}
DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Role:
    """Whom to ask and how; no other object holds an endpoint's credentials."""

    name: RoleName
    model: str
    temperature: float
    max_tokens: int
    timeout: float
    """Seconds that the server may be silent."""
    base_url: str
    """For the client only: may hold user information."""
    query: tuple[tuple[str, str], ...]
    """The base URL's query, which belongs behind each request's path; for the client only."""
    endpoint: str
    """Scheme, host, port and path: for the manifest and for messages."""
    key: str
    """For the client only; blank where none is set."""
    key_source: str
    """The variable that the key came from, or those it could come from."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request besides or instead of the usual ones; None removes one."""
    word: str = ""
    """What its variables are named for, as in LEXPILOT_<word>_API_KEY."""

    def request(self, prompt: str) -> dict[str, Any]:
        """The body of a chat completion request: one user message, one choice."""
        fields = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "n": 1,
            **self.params,
        }
        return {key: value for key, value in fields.items() if value is not None}

    def __repr__(self) -> str:
        return f"{self.name} model {self.model!r} at {self.endpoint}"

    def shown(self, text: str, most: int = 400) -> str:
        """The start of a text from outside, without this role's credentials, should a provider have echoed them.

        Credentials of up to three characters are placeholders and are left alone.
        """
        userinfo = urlsplit(self.base_url).netloc.rpartition("@")[0]
        secrets = {self.key, userinfo, *userinfo.split(":", 1), *(value for _, value in self.query)}
        secrets |= {base64.b64encode(unquote(userinfo).encode("utf-8")).decode("ascii")}
        spellings = (
            lambda s: s,
            unquote,
            lambda s: quote(s, safe=""),
            lambda s: repr(s)[1:-1],
            lambda s: json.dumps(s)[1:-1],
        )
        spelled = {spelling(secret) for secret in secrets if len(secret) > 3 for spelling in spellings}
        for secret in sorted(spelled, key=len, reverse=True):
            text = text.replace(secret, "***")
        return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text)[:most]  # no control character reaches a terminal


def make_role(
    name: RoleName,
    model: str,
    temperature: float,
    max_tokens: int,
    timeout: float,
    env: Mapping[str, str],
    params: Mapping[str, Any] | None = None,
    word: str | None = None,
) -> Role:
    """A role with the endpoint and key of its own variables, which bear that `word` or the role's usual one, else of the
    general ones, else OpenAI's address.

    Blank variables count as unset, values are stripped of white space. Raises SettingsError that names the variable,
    never its value.
    """

    word = word or VARIABLE_WORD[name]

    def first_set(kind: str) -> tuple[str, str]:
        sources = (f"LEXPILOT_{word}_{kind}", f"OPENAI_{kind}")
        return next(((s, env[s].strip()) for s in sources if env.get(s, "").strip()), (" or ".join(sources), ""))

    url_source, url = first_set("BASE_URL")
    key_source, key = first_set("API_KEY")
    if not all("!" <= char <= "~" for char in key):
        raise SettingsError(f"variable {key_source}: the key holds a blank, a control or a non-ASCII character")
    try:
        parts = urlsplit(url or DEFAULT_BASE_URL)
        usable = parts.scheme in ("http", "https") and bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # a port that is none, brackets that are no address, a host name that no resolver takes
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise SettingsError(f"variable {url_source}: not a web address; it must look like https://HOST/v1")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    if len(key) > 3 and key in json.dumps(params):
        raise SettingsError(f"LEXPILOT_{word}_PARAMS: holds the key, but is written to files; take it out")
    return Role(
        name,
        model,
        temperature,
        max_tokens,
        timeout,
        base_url=f"{parts.scheme}://{parts.netloc}{path}",
        query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        endpoint=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}",
        key=key,
        key_source=key_source,
        params=params or {},
        word=word,
    )


# ----------------------------------------------------------------------------------------------------------------------
# What one request may come to

Send = Callable[[Mapping[str, Any]], bytes]
"""Posts one chat completion request and returns the body of the answer; raises Fault where there is none."""
Connect = Callable[[Role], Send]

PASSING = {408, 409, 429}  # and everything from 500 on
THROTTLED = {"rate_limit_exceeded", "rate_limit_error", "throttling", "throttling.ratequota", "1302", "1303", "1305"}
# Codes and types by which providers mark what no further try changes, whatever the status.
EXHAUSTED = {
    *("insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached", "billing_not_active"),
    *("insufficient_balance", "insufficient_user_quota", "arrearage", "1113"),
}
TOO_LONG = {"context_length_exceeded", "exceed_context_size_error"}
FILTERED = {
    *("content_filter", "content_policy_violation", "data_inspection_failed", "datainspectionfailed", "1301"),
    *("sensitive_words_detected", "sensitivecontentdetected"),
    *("inputtextsensitivecontentdetected", "outputtextsensitivecontentdetected"),
    "content exists risk",  # the whole message of a provider whose code for it says nothing
}


class Fault(Exception):
    """One request brought no completion."""

    def __init__(
        self,
        words: str,
        status: int | None = None,
        pause: float | None = None,
        final: bool = False,
        marks: frozenset[str] = frozenset(),
        code: str | None = None,
    ) -> None:
        super().__init__(words)
        self.status = status
        self.pause = pause  # seconds that the provider asks for
        self.final = final  # whether another try is pointless
        self.marks = marks  # the provider's code and type for it, and its whole message, in lower case
        self.code = code  # the first of them as the provider spells it
        self.throttled = not final and (status == 429 or not marks.isdisjoint(THROTTLED))


def provider_fault(status: int | None, body: Any, pause: float | None = None) -> Fault:
    """What an error body says: {"error": {…}}, {"detail": …}, a flat {"message": …, "code": …}, a text or a page.

    An error inside a 200 has no status of its own (None): a three-digit code from 400 on is taken for it.
    """
    error = body.get("error") or body if isinstance(body, dict) else body
    named, message = [], error
    if isinstance(error, dict):
        named = [str(error[key]) for key in ("code", "type") if error.get(key)]
        message = error.get("message") or error.get("detail") or error
    words = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    status = status or next((int(name) for name in named if re.fullmatch("[45][0-9]{2}", name)), None)
    refused = status is not None and status < 500 and status not in PASSING
    head = f"HTTP {status}" if status else "an error in the answer"
    told = dict.fromkeys(name for name in named if name != str(status))
    marks = frozenset(name.lower().strip(" .") for name in (*named, words))
    return Fault(
        f"{' '.join([head, *told])}: {' '.join(words.split()) or 'without a word'}",
        status,
        pause,
        final=refused or not marks.isdisjoint(EXHAUSTED | FILTERED),
        marks=marks,
        code=named[0] if named else None,
    )


def completion_of(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; Fault for a blank or broken body, a page, and an error inside a 200."""
    try:
        value = json.loads(decode_utf8(body))
    except (ValueError, RecursionError) as error:
        text = body.decode("utf-8", errors="replace").strip()
        raise Fault(f"the answer is not JSON: {text!r}" if text else "the answer is blank") from error
    if not isinstance(value, dict):
        raise Fault(f"the answer is not a JSON object: {value!r}")
    if value.get("error"):
        raise provider_fault(None, value)
    return value


def pause_asked(retry_after: str) -> float | None:
    """Seconds that a Retry-After header (a number or a date) asks for; None where it is absent or neither."""
    import email.utils  # here, so that what asks nothing starts without it

    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


# ----------------------------------------------------------------------------------------------------------------------
# The openai client


def openai_client(role: Role) -> Send:
    """A client of the role's own, shared by all threads; SettingsError before any request if it cannot be made.

    Its headers, proxies and trust in certificates are the `openai` client's, and so is the HTTP object that sends. The
    methods above that are left out: they walk through each field of a request and of its answer, which is half of all
    that a call costs here, and hand on a page as a str and an error inside a 200 as a completion without choices.
    """
    if not role.key:
        raise SettingsError(f"{role}: no key; set {role.key_source} (for a local server without keys, any word)")
    try:
        import openai
    except ImportError as error:
        raise SettingsError(f"{error}; run: python -m pip install -r requirements.txt") from error
    # The HTTP library that this `openai` came with: httpx, since its third version httpx2.
    library = sys.modules[openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]
    headers = library.Headers({"Authorization": f"Bearer {role.key}"})

    def connection() -> Any:
        """A client's HTTP object, which keeps one connection open."""
        return openai.DefaultHttpxClient(
            verify=certificates,
            timeout=role.timeout,
            headers=headers,
            # A redirect would send the consultation to an address that nobody named, or turn the request into a GET.
            follow_redirects=False,
        )

    try:
        certificates = library.create_ssl_context()  # one for all, since they take long to read
        first = connection()
        defaults = openai.OpenAI(api_key=role.key, base_url=role.base_url, http_client=first).default_headers
        headers.update({name: value for name, value in defaults.items() if isinstance(value, str)})
        url = first.build_request("POST", f"{role.base_url}/chat/completions", params=role.query).url
    except Exception as error:  # whatever a constructor raises is a surrounding it cannot use: a proxy, a TLS file
        named = [name for name in os.environ if name.upper().endswith(("_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"))]
        raise SettingsError(
            f"{role}: no client can be made: {error}; look at {', '.join(named) or 'the base URL'}"
        ) from error

    import ssl

    # One for each request at once, since a pool of connections goes through all of them whenever it hands one out.
    idle: list[Any] = []

    def send(request: Mapping[str, Any]) -> bytes:
        try:
            mine = idle.pop()
        except IndexError:
            mine = connection()
        try:
            response = mine.post(url, content=json.dumps(request, ensure_ascii=False, allow_nan=False).encode("utf-8"))
        except library.TimeoutException as error:
            raise Fault(f"no answer within {role.timeout:g} s (--timeout)") from error
        except ValueError as error:  # a header or a text that cannot be written
            raise Fault(f"the request cannot be sent: {error}", final=True) from error
        except Exception as error:  # whatever else its layers raise is a connection that did not do
            causes = list(_causes(error))
            told = dict.fromkeys(str(cause).rstrip(".") for cause in causes if str(cause))
            untrusted = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
            raise Fault(": ".join(["Connection error", *told]), final=untrusted) from error
        finally:
            idle.append(mine)
        content: bytes = response.content
        if response.status_code >= 300:
            raise _refusal(response.status_code, response.headers, content, response.text)
        return content

    return send


def _refusal(status: int, headers: Mapping[str, str], content: bytes, text: str) -> Fault:
    """What an answer other than a 2xx comes to."""
    told: Any = text
    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(content)
    if status < 400:
        told = f"a redirect to {headers.get('location', 'nowhere')}"
    return provider_fault(status, told, pause_asked(headers.get("retry-after", "")))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ----------------------------------------------------------------------------------------------------------------------
# How many requests at once

Aside = Callable[[], AbstractContextManager[None]]
"""In it a thread waits without keeping a place from another case."""
# Successes that raise a lowered limit by one; a low limit needs only twice itself, so that it recovers soon.
RAISED_AFTER = 20
TELL_EVERY = 10.0  # seconds between two words on throttling: 64 threads would say the same


class Gate:
    """The limit on a role's open requests, from 1 to `most`: a throttled request lowers it by one, successes raise it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.turns = Turns(most)
        self.lock = threading.Lock()
        self.successes = 0  # since the limit moved
        self.last_success = -math.inf
        self.last_told = -math.inf

    @contextmanager
    def turn(self, aside: Aside) -> Iterator[None]:
        """One of the turns, given back at the end."""
        if not self.turns.take_free():
            with aside():
                self.turns.take()
        try:
            yield
        finally:
            self.turns.give()

    def succeeded(self, now: float) -> None:
        with self.lock:
            self.last_success = now
            self.successes += 1
            if self.turns.limit < self.most and self.successes >= min(RAISED_AFTER, 2 * self.turns.limit):
                self._move(1)

    def throttled(self) -> None:
        with self.lock:
            self._move(-1)

    def _move(self, by: int) -> None:
        self.turns.set_limit(max(1, self.turns.limit + by))
        self.successes = 0

    def may_tell(self, now: float) -> bool:
        with self.lock:
            due = now - self.last_told >= TELL_EVERY
            self.last_told = now if due else self.last_told
            return due


# ----------------------------------------------------------------------------------------------------------------------
# Asking

LONGEST_PAUSE = 600.0  # seconds; a provider that asks for more is reported instead of waited for
PATIENCE = 600.0  # seconds in which a role gets nothing but refusals
ANNOUNCED = 60.0  # seconds; a longer pause is always told


@dataclass
class Spent:
    """What a call has taken so far."""

    attempts: int = 0
    refused: int = 0
    seconds: float = 0.0


class Channel:
    """A role's way to its provider, shared by all cases: the client, the retry loop, the limit, and what was counted.

    `pause` waits that many seconds, `clock` tells them.
    """

    def __init__(
        self,
        role: Role,
        connect: Connect,
        retries: int,
        parallel: int = 1,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.role, self.connect, self.retries, self.pause, self.clock = role, connect, retries, pause, clock
        self.gate = Gate(parallel)
        self.counts = Counter[str]()  # calls, tokens, calls that told no tokens ("untold"), throttled requests
        self.lock = threading.Lock()

    @cached_property
    def send(self) -> Send:
        """The client, made on first use; a run makes it before its threads start."""
        return self.connect(self.role)

    def complete(self, prompt: str, calls: list[Call], aside: Aside = nullcontext) -> str:
        """The visible text of the reply to one user message; what it took is added to `calls`.

        Connection, timeout, 408, 409, 5xx, an unusable body and a rejected reply are tried again up to `retries` times.
        Throttling (429) does not count among these: it is waited out, and ends the call only after ten minutes in which
        this role got nothing else. The waits double from 1 s to 60 s, less up to half of it by chance, and are never
        shorter than the provider asks; they are spent `aside`. Raises ProviderError, ModelOutputError or BlockedError
        when the tries are used up or another is pointless.
        """
        request, spent = self.role.request(prompt), Spent()
        kind: type[LexPilotError]
        faults = throttled = 0
        since = math.inf
        while True:
            try:
                return self._reply(request, spent, calls, aside)
            except UnreadableReply as error:
                code = "content_filter" if isinstance(error, FilteredReply) else None
                marks = frozenset({code} if code else ())
                kind, fault = ModelOutputError, Fault(f"the reply is rejected: {error}", marks=marks, code=code)
            except Fault as error:
                kind, fault = ProviderError, error
            if fault.throttled:
                throttled += 1
                since = max(min(since, self.clock()), self.gate.last_success)
                pause = _pause(throttled, fault)
                over = self.clock() + pause - since > PATIENCE
            else:
                faults += 1
                pause = _pause(faults, fault)
                over = fault.final or faults > self.retries
            if over or pause > LONGEST_PAUSE:
                break
            told = f"{self.role}: {self.role.shown(str(fault))}"
            if not fault.throttled:
                notice(f"{told}; try {faults + 1} of {self.retries + 1} in {pause:.1f} s")
            elif pause > ANNOUNCED or self.gate.may_tell(self.clock()):
                limit = self.gate.turns.limit
                notice(f"{told}; throttled to {limit} of {self.gate.most} at once, asks again in {pause:.1f} s")
            with aside():
                self.pause(pause)
        asked = ""
        if pause > LONGEST_PAUSE:
            asked = f" It asks for a pause of {pause:.0f} s."
        elif fault.throttled:
            asked = f" It has answered nothing else for {self.clock() - since:.0f} s."
        tries = faults + throttled
        words = self.role.shown(str(fault))
        message = f"{self.role}, {tries} {'try' if tries == 1 else 'tries'}: {words}.{asked} {self._advice(fault)}"
        if fault.marks.isdisjoint(FILTERED):
            raise kind(message) from fault
        if kind is ProviderError:  # a rejected reply is noted already
            self._note(calls, spent, "blocked", {})
        code = None if fault.code is None else storable(self.role.shown(fault.code))
        raise BlockedError(message, Block(role=self.role.name, code=code, words=storable(words, 400))) from fault

    def _reply(self, request: Mapping[str, Any], spent: Spent, calls: list[Call], aside: Aside) -> str:
        """The text that one request comes to; Fault or UnreadableReply where it comes to none."""
        with self.gate.turn(aside):
            began = self.clock()
            spent.attempts += 1
            try:
                completion = completion_of(self.send(request))
                self.gate.succeeded(self.clock())
            except Fault as fault:
                if fault.throttled:
                    self.gate.throttled()
                    spent.refused += 1
                    with self.lock:
                        self.counts["throttled"] += 1
                raise
            finally:
                spent.seconds += self.clock() - began
        try:
            text = completion_text(completion)
        except UnreadableReply:
            self._note(calls, spent, "rejected", completion)
            raise
        self._note(calls, spent, "used", completion)
        return text

    def _note(self, calls: list[Call], spent: Spent, outcome: Outcome, completion: Mapping[str, Any]) -> None:
        usage = usage_of(completion)
        tokens = tokens_of(usage)
        calls.append(
            Call(
                role=self.role.name,
                outcome=outcome,
                model=named_model(completion),
                finish_reason=finish_reason_of(completion),
                usage=usage,
                attempts=spent.attempts,
                refused=spent.refused,
                seconds=round(spent.seconds, 3),
            )
        )
        spent.attempts, spent.refused, spent.seconds = 0, 0, 0.0
        with self.lock:
            self.counts["calls"] += 1
            self.counts["untold"] += tokens is None
            self.counts["tokens"] += sum(tokens or ())

    def _advice(self, fault: Fault) -> str:
        """What to change, by the answer's status: the provider's own words stand before it."""
        word = "MODEL" if self.role.name == "evaluated" else f"{self.role.word}_MODEL"
        params = f"--{self.role.word.lower().replace('_', '-')}-params"
        temperature, tokens = "--judge-temperature" if self.role.name == "judge" else "--temperature", "--max-tokens"
        anew, needs = "with a new --run-id", "need a new --run-id"
        if self.role.word not in VARIABLE_WORD.values():  # asked about a finished run, in files of its own
            temperature = tokens = params
            anew, needs = (
                "which makes it another judge, with files of its own",
                "make it another judge, with files of its own",
            )
        model = f"--{word.lower().replace('_', '-')} (LEXPILOT_{word})"
        parameter = (
            f"If that is about the model, change {model}; about the temperature, {temperature}; about length or tokens, "
            f"{tokens}; {params} removes or replaces any field of the request (each {anew})"
        )
        if fault.marks & EXHAUSTED:
            return "Top up the account"
        if fault.marks & TOO_LONG:
            return (
                "Give the model a longer context (a local server may divide its own among its slots); a smaller limit by "
                f"{tokens}, {anew}, helps where the limit of the reply counts as well"
            )
        if fault.marks & FILTERED:
            return (
                "Its provider refuses this text: --record-blocked records the case as blocked and goes on; "
                f"other providers for this role {needs}"
            )
        if fault.throttled:
            return "The same command resumes: wait, or ask the provider for a higher limit"
        if fault.status and fault.status < 400:
            return "Set the base URL to the address that it redirects to"
        return {
            400: parameter,
            401: f"Check the key in {self.role.key_source} and that it belongs to this endpoint",
            402: "Top up the account",
            403: "The account, the region or this very content is not allowed; the provider's words say which",
            404: f"Check {model} and the base URL, which often ends in /v1",
            422: parameter,
        }.get(
            fault.status or 0,
            f"When that is mended, the same command resumes; other models, temperatures or token limits {needs}",
        )


def _pause(tried: int, fault: Fault) -> float:
    return max(fault.pause or 0.0, min(60.0, 2.0 ** min(tried - 1, 6)) * random.uniform(0.5, 1.0))


# ----------------------------------------------------------------------------------------------------------------------
# A case asks

JUDGE_TRIES = 4  # the first and three more; transport retries within a try do not count


class CaseLog:
    """A case's calls, and the answers that it was given before an interruption; the log of one thread, as a case is.

    `kept` are those answers in their order, `save` keeps a new one with the calls that it took.
    """

    def __init__(
        self, kept: Iterable[Mapping[str, Any]] = (), save: Callable[[Answer, list[Call]], object] | None = None
    ) -> None:
        self.kept = deque(kept)
        self.save = save
        self.calls: list[Call] = []
        self.saved = 0  # how many of the calls stand in a saved answer

    def recall(self, role: RoleName, prompt: str) -> str | None:
        """The next answer from before, if it was given to just this prompt."""
        if not self.kept or (self.kept[0]["role"], self.kept[0]["prompt_sha256"]) != (role, _sha256(prompt)):
            return None
        answer = self.kept.popleft()
        self.calls += answer["calls"]
        self.saved = len(self.calls)
        return str(answer["reply"])

    def keep(self, role: RoleName, prompt: str, reply: str) -> None:
        if self.save:
            self.save(Answer(role=role, prompt_sha256=_sha256(prompt), reply=reply), self.calls[self.saved :])
        self.saved = len(self.calls)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class ChatModel:
    """A role as one case asks it. No answer that was used is asked for again after an interruption."""

    channel: Channel
    log: CaseLog = field(default_factory=CaseLog)
    aside: Aside = nullcontext
    record_blocked: bool = False

    def ask(self, prompt: str) -> str:
        """The visible text of the reply to one user message; errors as of `Channel.complete`."""
        name = self.channel.role.name
        reply = self.log.recall(name, prompt)
        if reply is None:
            reply = self.channel.complete(prompt, self.log.calls, self.aside)
            self.log.keep(name, prompt, reply)
        return reply

    def ask_judge(self, prompt: str, read: Callable[[str], T]) -> tuple[T, str]:
        """What `read` makes of the reply, and the reply itself; asked again, up to three times, while it raises
        UnreadableReply. Raises ModelOutputError with the last reason and the start of the last reply.
        """
        role = self.channel.role
        reply = self.log.recall(role.name, prompt)
        if reply is not None:
            return read(reply), reply  # only readable ones are kept
        for tried in range(1, JUDGE_TRIES + 1):
            reply = self.channel.complete(prompt, self.log.calls, self.aside)
            try:
                found = read(reply)
            except UnreadableReply as error:
                unreadable = role.shown(str(error))
                self.log.calls[-1]["outcome"] = "unreadable"
                notice(f"{role}: judgment {tried} of {JUDGE_TRIES} is unreadable: {unreadable}")
            else:
                self.log.keep(role.name, prompt, reply)
                return found, reply
        raise ModelOutputError(
            f"{role}: no readable judgment in {JUDGE_TRIES} tries; of the last one, {unreadable}: "
            f"{role.shown(reply or '', 200)!r}. "
            "The same command asks once more"
        )

    def or_blocked(self, work: Callable[[], T]) -> T | Blocked:
        """What the work comes to or, where such outcomes are recorded, that a content filter refused it for good."""
        try:
            return work()
        except BlockedError as error:
            if not self.record_blocked:
                raise
            notice(f"recorded as blocked: {error}")
            return Blocked(blocked=error.block)
