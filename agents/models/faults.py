# SPDX-License-Identifier: Apache-2.0
"""What went wrong with a call, from whatever the client raised: a ModelFault without any key.

It reads exceptions by their names and attributes, since the HTTP library below the `openai` package
changed between its versions. It knows no retries.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from typing import NamedTuple

from ..model import FaultKind, ModelFault
from .keys import scrub

LONGEST_MESSAGE = 400
"""Of a server's own words; some send their whole validation report, prompt included."""

_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|context (length|window|size)|prompt is too long"
    r"|input is too long|too many (input )?tokens|input tokens? .{0,20}exceed|\bn_ctx\b"
    r"|maximum (input|prompt) length|(input|prompt) \(?\d+ tokens\)? is longer",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ](quota|credit|fund|balance)|exceeded your current quota|out of credits"
    r"|billing_hard_limit|payment required",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model .{0,80}(does not exist|not found|is not available|not exist)",
    re.IGNORECASE | re.DOTALL,
)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")


class ServerRefusal(NamedTuple):
    """What a server said of a request that it did not answer."""

    status: int
    message: str
    code: str
    param: str
    headers: Mapping[str, str]

    @property
    def words(self) -> str:
        """Code and message, to search in."""
        return f"{self.code} {self.message}"


def refusal_of(error: BaseException) -> ServerRefusal | None:
    """The server's refusal, where the exception is one."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return None
    code, param = getattr(error, "code", None), getattr(error, "param", None)
    kind = getattr(error, "type", None)
    response = getattr(error, "response", None)
    headers = {k.lower(): v for k, v in dict(getattr(response, "headers", None) or {}).items()}
    # A status is no code; some servers repeat it there and put the code into the type.
    codes = [str(part) for part in (code, kind) if part and not str(part).isdigit()]
    message = _body_message(getattr(error, "body", None)) or str(error)
    return ServerRefusal(status, message, " ".join(codes), str(param or ""), headers)


def fault_of(error: BaseException, *, endpoint: str, model: str, received: int = 0) -> ModelFault:
    """The fault that an exception of the client means.

    Args:
        error: what was raised.
        endpoint: the base URL, for the message.
        model: the model's name there, for the message.
        received: characters of the reply that had come before.

    Raises:
        BaseException: `error` itself, where it is none of the client's: a defect of ours.
    """
    refusal = refusal_of(error)
    if refusal is not None:
        return _of_refusal(refusal, endpoint=endpoint, model=model)
    names = _names(error)
    if "APITimeoutError" in names or "TimeoutException" in names:
        if _was_never_sent(error):
            return ModelFault(FaultKind.UNREACHABLE, f"{endpoint} does not accept connections")
        return ModelFault(FaultKind.TIMED_OUT, f"{endpoint} stayed silent for too long")
    if names & {"APIConnectionError", "TransportError", "RequestError", "OSError"}:
        return _of_connection(error, endpoint, received)
    if "APIResponseValidationError" in names or isinstance(error, ValueError | RecursionError):
        return ModelFault(
            FaultKind.MALFORMED, _cut(f"{endpoint} answered with what is no reply: {error}")
        )
    if "APIError" in names:
        return _of_stream(error, endpoint=endpoint, model=model, received=received)
    if "OpenAIError" in names:
        return ModelFault(FaultKind.REFUSED, _cut(f"the client refused the request: {error}"))
    raise error


def _of_refusal(refusal: ServerRefusal, *, endpoint: str, model: str) -> ModelFault:
    kind = kind_of(refusal)
    said = f"{endpoint} answered {refusal.status}: {refusal.message}"
    if kind is FaultKind.UNKNOWN_MODEL:
        lacking = f"{endpoint} has no model '{model}' (or no such path; {refusal.status})"
        said = f"{lacking}: {refusal.message}"
    elif 300 <= refusal.status < 400:
        place = refusal.headers.get("location", "elsewhere")
        said = f"{endpoint} redirects to {place}: a base URL must be the final one"
    retry_after = retry_after_s(refusal.headers) if refusal.status in (429, 503) else None
    return ModelFault(kind, _cut(said), retry_after_s=retry_after, status=refusal.status)


def kind_of(refusal: ServerRefusal) -> FaultKind:
    """The kind of fault that a refusal is."""
    status, words = refusal.status, refusal.words
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(words)):
        return FaultKind.QUOTA
    if status in (401, 403):
        return FaultKind.KEY
    if status == 429:
        return FaultKind.RATE_LIMITED
    # A gateway gave up waiting; the model behind it may have been at work, and be paid.
    if status in (408, 504, 524):
        return FaultKind.TIMED_OUT
    if status == 413 or (status in (400, 422, 500) and _CONTEXT.search(words)):
        return FaultKind.CONTEXT
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(words)):
        return FaultKind.UNKNOWN_MODEL
    if status in (409, 425) or status >= 500:
        return FaultKind.SERVER
    return FaultKind.REFUSED


def _of_connection(error: BaseException, endpoint: str, received: int) -> ModelFault:
    if _was_never_sent(error) and not received:
        why = _cut(str(error.__cause__ or error))
        return ModelFault(FaultKind.UNREACHABLE, f"{endpoint} cannot be reached: {why}")
    return dropped_fault(endpoint, received)


def dropped_fault(endpoint: str, received: int) -> ModelFault:
    """The fault of a reply that broke off."""
    after = f"after {received} characters of the reply" if received else "before the reply"
    return ModelFault(FaultKind.DROPPED, f"the connection to {endpoint} was lost {after}")


def _of_stream(error: BaseException, *, endpoint: str, model: str, received: int) -> ModelFault:
    """An error that came as a part of a stream which had begun with status 200."""
    code = getattr(error, "code", None)
    status = int(code) if code and str(code).isdigit() else 500
    words = [str(part) for part in (code, getattr(error, "type", None)) if part]
    message = getattr(error, "message", None) or str(error)
    refusal = ServerRefusal(status, str(message), " ".join(words), "", {})
    if re.search(r"rate_?limit", refusal.words, re.IGNORECASE):
        refusal = refusal._replace(status=429)
    fault = _of_refusal(refusal, endpoint=endpoint, model=model)
    if received:
        # What was generated so far is billed.
        return ModelFault(FaultKind.DROPPED, f"{fault} (after {received} characters)")
    return fault


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: its `retry-after`, else when its rate limit is reset."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is None and text:
        seconds = _seconds_until(text, headers.get("date", ""))
    return seconds if seconds is not None else reset_s(headers)


def reset_s(headers: Mapping[str, str]) -> float | None:
    """Seconds until an exhausted rate limit is full again; None where none is exhausted."""
    waits = []
    for what in ("requests", "tokens"):
        remaining = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
        reset = _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        if remaining is not None and remaining <= 0 and reset is not None:
            waits.append(reset)
    return max(waits, default=None)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()) else None


def _duration(text: str) -> float | None:
    """Seconds of `6m0s`, `1s`, `20ms` or a plain number."""
    plain = _number(text)
    match = _DURATION.fullmatch(text.strip())
    if plain is not None or not match or not any(match.groups()):
        return plain
    parts = [_number(part or "0") or 0.0 for part in match.groups()]
    return parts[0] * 3600 + parts[1] * 60 + parts[2] + parts[3] / 1000


def _seconds_until(text: str, now: str) -> float | None:
    """Seconds to an HTTP date, by the server's own clock (a reply without a date tells nothing)."""
    try:
        span = email.utils.parsedate_to_datetime(text) - email.utils.parsedate_to_datetime(now)
    except (ValueError, TypeError):
        return None
    return max(0.0, span.total_seconds())


def _was_never_sent(error: BaseException) -> bool:
    """Whether nothing can have reached the server, so that nothing can have been paid."""
    names = _names(error) | (_names(error.__cause__) if error.__cause__ else set())
    early = {
        "ConnectError",
        "ConnectTimeout",
        "PoolTimeout",
        "UnsupportedProtocol",
        "ProxyError",
        "LocalProtocolError",
        "InvalidURL",
    }
    return bool(names & early)


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _body_message(body: object) -> str:
    """The server's words; FastAPI's servers put them into `detail`."""
    if isinstance(body, Mapping):
        found = body.get("message") or body.get("detail") or body.get("error")
        return found if isinstance(found, str) else str(found or "")
    return body if isinstance(body, str) else ""


def _cut(text: str) -> str:
    """One line of bounded length without a key."""
    line = " ".join(scrub(text).split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]} …"
