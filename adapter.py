"""The model adapter: a role and its endpoint, the `openai` client behind it, and the one retry loop around a call.

The evaluated model, the User Model and the judge are three roles, each a frozen object of its own. A call is one user
message that asks for one choice. What may pass is tried again here and nowhere else (the client's own retries are off);
what cannot pass gets one request. No text that stands for a failure ever comes back: `ask` returns an answer or raises.
"""

import base64
import email.utils
import itertools
import json
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from errors import LexPilotError, ModelOutputError, ProviderError, SettingsError, notice
from replies import UnreadableReply, completion_text, decode_utf8

T = TypeVar("T")

# ----------------------------------------------------------------------------------------------------------------------
# Roles

RoleName = Literal["evaluated", "user", "judge"]
ROLE_NAMES: tuple[RoleName, ...] = get_args(RoleName)
OPTION_WORD: dict[RoleName, str] = {"evaluated": "MODEL", "user": "USER_MODEL", "judge": "JUDGE_MODEL"}
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
    name: RoleName, model: str, temperature: float, max_tokens: int, timeout: float, env: Mapping[str, str]
) -> Role:
    """A role with the endpoint and key of its own variables, else of the general ones, else OpenAI's address.

    Blank variables count as unset, values are stripped of white space. Raises SettingsError that names the variable,
    never its value.
    """

    def first_set(kind: str) -> tuple[str, str]:
        sources = (f"LEXPILOT_{VARIABLE_WORD[name]}_{kind}", f"OPENAI_{kind}")
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
    )


# ----------------------------------------------------------------------------------------------------------------------
# What one request may come to

Send = Callable[[Mapping[str, Any]], bytes]
"""Posts one chat completion request and returns the body of the answer; raises Fault where there is none."""
Connect = Callable[[Role], Send]

PASSING = {408, 409, 429}  # and everything from 500 on
# Codes and types by which providers mark what no further try changes, whatever the status.
EXHAUSTED = {
    *("insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached", "billing_not_active"),
    *("insufficient_balance", "insufficient_user_quota", "arrearage", "1113"),
}
TOO_LONG = {"context_length_exceeded", "exceed_context_size_error"}
FILTERED = {"content_filter", "content_policy_violation", "data_inspection_failed", "datainspectionfailed", "1301"}


class Fault(Exception):
    """One request brought no completion."""

    def __init__(
        self,
        words: str,
        status: int | None = None,
        pause: float | None = None,
        final: bool = False,
        marks: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(words)
        self.status = status
        self.pause = pause  # seconds that the provider asks for
        self.final = final  # whether another try is pointless
        self.marks = marks  # the provider's code and type for it, in lower case


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
    marks = frozenset(name.lower() for name in named)
    return Fault(
        f"{' '.join([head, *told])}: {' '.join(words.split()) or 'without a word'}",
        status,
        pause,
        final=refused or not marks.isdisjoint(EXHAUSTED | FILTERED),
        marks=marks,
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
    """A client of the role's own, shared by all threads; SettingsError before any request if it cannot be made."""
    if not role.key:
        raise SettingsError(f"{role}: no key; set {role.key_source} (for a local server without keys, any word)")
    try:
        import openai
    except ImportError as error:
        raise SettingsError(f"{error}; run: python -m pip install -r requirements.txt") from error
    try:
        client = openai.OpenAI(
            api_key=role.key,
            base_url=role.base_url,
            default_query=dict(role.query),
            timeout=role.timeout,
            max_retries=0,
            # A redirect would send the consultation to an address that nobody named, or turn the request into a GET.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )
    except Exception as error:  # whatever its constructor raises is a surrounding it cannot use: a proxy, a TLS file
        named = [name for name in os.environ if name.upper().endswith(("_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"))]
        raise SettingsError(
            f"{role}: no client can be made: {error}; look at {', '.join(named) or 'the base URL'}"
        ) from error

    def send(request: Mapping[str, Any]) -> bytes:
        try:
            # The raw body, since the client hands on a page as a str and an error as a completion without choices; and
            # the request as it stands, since its typed method walks through every field first, a third of a call's work.
            return client.post("/chat/completions", cast_to=bytes, body=dict(request))
        except openai.APIStatusError as error:
            try:
                told = json.loads(error.response.content)
            except (ValueError, RecursionError):
                told = error.response.text
            headers = error.response.headers
            if error.status_code < 400:
                told = f"a redirect to {headers.get('location', 'nowhere')}"
            raise provider_fault(error.status_code, told, pause_asked(headers.get("retry-after", ""))) from error
        except openai.APITimeoutError as error:
            raise Fault(f"no answer within {role.timeout:g} s (--timeout)") from error
        except openai.APIConnectionError as error:
            causes = list(_causes(error))
            words = ": ".join(dict.fromkeys(str(cause).rstrip(".") for cause in causes if str(cause)))
            untrusted = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
            raise Fault(words, final=untrusted) from error
        except ValueError as error:  # a header or an address that cannot be written
            raise Fault(f"the request cannot be sent: {error}", final=True) from error

    return send


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ----------------------------------------------------------------------------------------------------------------------
# Asking

JUDGE_TRIES = 4  # the first and three more; transport retries within a try do not count
LONGEST_PAUSE = 600.0  # seconds; a provider that asks for more is reported instead of waited for


@dataclass(frozen=True)
class ChatModel:
    """A role that can be asked, by any number of threads; `pause` waits that many seconds between tries."""

    role: Role
    connect: Connect
    retries: int
    pause: Callable[[float], object] = time.sleep

    @cached_property
    def send(self) -> Send:
        """The client, made on first use; a run makes it before its threads start."""
        return self.connect(self.role)

    def ask(self, prompt: str) -> str:
        """The visible text of the reply to one user message.

        Connection, timeout, 408, 409, 429, 5xx, an unusable body and a rejected reply are tried again up to `retries`
        times. The wait doubles from 1 s to 60 s, less up to half of it by chance, and is never shorter than the
        provider asks. Raises ProviderError or ModelOutputError when the tries are used up or another is pointless.
        """
        request = {
            "model": self.role.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.role.temperature,
            "max_tokens": self.role.max_tokens,
            "n": 1,
        }
        kind: type[LexPilotError]
        for tried in itertools.count(1):
            try:
                return completion_text(completion_of(self.send(request)))
            except UnreadableReply as error:
                kind, fault = ModelOutputError, Fault(f"the reply is rejected: {error}")
            except Fault as error:
                kind, fault = ProviderError, error
            pause = max(fault.pause or 0.0, min(60.0, 2.0 ** min(tried - 1, 6)) * random.uniform(0.5, 1.0))
            if fault.final or tried > self.retries or pause > LONGEST_PAUSE:
                break
            notice(
                f"{self.role}: {self.role.shown(str(fault))}; try {tried + 1} of {self.retries + 1} in {pause:.1f} s"
            )
            self.pause(pause)
        asked = f" It asks for a pause of {pause:.0f} s." if pause > LONGEST_PAUSE else ""
        times = "1 try" if tried == 1 else f"{tried} tries"
        raise kind(f"{self.role}, {times}: {self.role.shown(str(fault))}.{asked} {self._advice(fault)}") from fault

    def ask_judge(self, prompt: str, read: Callable[[str], T]) -> tuple[T, str]:
        """What `read` makes of the reply, and the reply itself; asked again, up to three times, while it raises
        UnreadableReply. Raises ModelOutputError with the last reason and the start of the last reply.
        """
        for tried in range(1, JUDGE_TRIES + 1):
            reply = self.ask(prompt)
            try:
                return read(reply), reply
            except UnreadableReply as error:
                unreadable = error
            notice(f"{self.role}: judgment {tried} of {JUDGE_TRIES} is unreadable: {self.role.shown(str(unreadable))}")
        raise ModelOutputError(
            f"{self.role}: no readable judgment in {JUDGE_TRIES} tries; of the last one, {self.role.shown(str(unreadable))}: "
            f"{self.role.shown(reply, 200)!r}. "
            "The same command asks once more; another judge needs a new --run-id"
        )

    def _advice(self, fault: Fault) -> str:
        """What to change, by the answer's status: the provider's own words stand before it."""
        word = OPTION_WORD[self.role.name]
        temperature = "--judge-temperature" if self.role.name == "judge" else "--temperature"
        parameter = (
            f"If that is about the temperature, change {temperature}; "
            "about length or tokens, --max-tokens (with a new --run-id)"
        )
        if fault.marks & EXHAUSTED:
            return "Top up the account"
        if fault.marks & TOO_LONG:
            return (
                "Give the model a longer context (a local server may divide its own among its slots); a smaller --max-tokens, "
                "with a new --run-id, helps where the limit of the reply counts as well"
            )
        if fault.marks & FILTERED:
            return "Its provider refuses this text: give this role another provider, with a new --run-id"
        if fault.status and fault.status < 400:
            return "Set the base URL to the address that it redirects to"
        return {
            400: parameter,
            401: f"Check the key in {self.role.key_source} and that it belongs to this endpoint",
            402: "Top up the account",
            403: "The account, the region or this very content is not allowed; the provider's words say which",
            404: f"Check --{word.lower().replace('_', '-')} (LEXPILOT_{word}) and the base URL, which often ends in /v1",
            422: parameter,
            429: "Wait or top up the account; a smaller --parallel and a larger --retries ride out throttling",
        }.get(
            fault.status or 0,
            "When that is mended, the same command resumes; other models, temperatures or token limits need a new --run-id",
        )
