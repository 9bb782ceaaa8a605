"""Leases through a Leasehold gateway.

    with leasehold.open("http://127.0.0.1:7470", ttl=10) as leases:
        with leases.acquire("reports/nightly", wait=300) as lease:
            lease.assert_held(0.5)
            write(report, token=lease.token)

Times are seconds. All methods may be called from any thread.
"""

import http.client
import json
import ssl
import threading
import time
import urllib.parse
import uuid
from typing import Any, Dict, Iterator, List, Optional, Tuple

__all__ = ["Lease", "LeaseLost", "Leases", "LeaseholdError", "open"]

# The longest wait of one request. The client then repeats it, so that no proxy considers the
# connection dead.
_POLL = 20.0
# The time limit of requests that the gateway answers at once.
_TIMEOUT = 5.0
_RETRY = 0.5
# The number of idle connections that are kept for later requests.
_IDLE = 8
# The most cookies of a load balancer that are kept, and the greatest length of each.
_COOKIES = 8
_COOKIE_LENGTH = 4096


class LeaseholdError(Exception):
    """A refusal, with Leasehold's stable code (``LEASE_HELD``, ``TIMEOUT``, ``NO_QUORUM``, ...)."""

    def __init__(self, code: str, detail: str, status: int = 0) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = status


class LeaseLost(LeaseholdError):
    """The lease can no longer be trusted: stop using the resource."""

    def __init__(self, resource: str, why: str) -> None:
        super().__init__("LEASE_LOST", f"the lease on {resource!r} is gone ({why})", 410)
        self.resource = resource


class _Moment:
    """A point in time by two clocks.

    The steady clock may stand still while the machine sleeps, and the system clock may be set,
    so the elapsed time is the greater of the two.
    """

    def __init__(self) -> None:
        self._steady = time.monotonic()
        self._system = time.time()

    def ago(self) -> float:
        return max(time.monotonic() - self._steady, time.time() - self._system)


class Lease:
    """The right to a resource until a deadline. Use it as a context manager, which releases it."""

    def __init__(self, leases: "Leases", answer: Dict[str, Any], sent: _Moment) -> None:
        self._leases = leases
        self._id: str = answer["lease"]
        self._session: str = answer["session"]
        self.resource: str = answer["resource"]
        self.slot: int = answer["slot"]
        self.holder: str = answer["holder"]
        #: The fencing token: greater in each later tenure of the resource.
        self.token: int = int(answer["token"])
        #: Whether another participant has asked for the resource.
        self.release_requested: bool = False
        #: Set when a loss or a release is noticed, which may be late. ``assert_held`` is never late.
        self.lost = threading.Event()
        self._why = "expired"
        self._sent = sent
        self._valid = 0.0
        self._over = False
        self._heard(answer, sent)

    def _heard(self, answer: Dict[str, Any], sent: _Moment) -> None:
        valid = answer["validForMs"] / 1000
        self.release_requested = answer["releaseRequested"]
        if self._over:
            return
        if valid <= 0:
            self._end(answer.get("lost", "expired"))
        # Answers may arrive out of order: the later end counts.
        elif valid - sent.ago() > self._valid - self._sent.ago():
            self._sent, self._valid = sent, valid

    def _end(self, why: str) -> None:
        if not self._over:
            self._why = why
            self._over = True
            self.lost.set()

    def remaining(self) -> float:
        """Seconds for which the lease can be trusted. Once it is 0, it stays 0."""
        left = 0.0 if self._over else self._valid - self._sent.ago()
        if left <= 0:
            self._end("expired")
            return 0.0
        return left

    def assert_held(self, at_least: float = 0.0) -> None:
        """Returns only if the lease is held now and for at least this many more seconds."""
        if not at_least >= 0:
            raise LeaseholdError("INVALID_DURATION", "at_least must be a number of 0 or more")
        left = self.remaining()
        if left <= 0 or left < at_least:
            raise LeaseLost(self.resource, self._why if left <= 0 else f"only {left:.3f} s are left")

    def release(self) -> None:
        """Releases the resource. The program must have stopped using it. No error if the lease is lost."""
        self._end("released")
        self._leases._forget(self)
        self._leases._undo("DELETE", f"/v1/leases/{self._id}", None)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Lease {self.resource!r} token {self.token}, {self.remaining():.3f} s left>"


class Leases:
    """The leases of one client at one gateway. ``close`` releases them all."""

    def __init__(self, url: str, ttl: float, token: Optional[str], context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise LeaseholdError("INVALID_URL", f"{url!r} is no address of a gateway")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._context = context
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._ttl = ttl
        self._idle: List[http.client.HTTPConnection] = []
        # The cookies of a load balancer keep this program at its gateway.
        self._cookies: Dict[str, str] = {}
        self._lock = threading.RLock()
        self._session: Optional[str] = None
        self._held: List[Lease] = []
        self._undone: List[Tuple[str, str, Optional[Dict[str, Any]]]] = []
        self._wake = threading.Event()
        self._closed = False
        self._renewer = threading.Thread(target=self._renew, name="leasehold", daemon=True)
        self._renewer.start()

    def acquire(
        self,
        resource: str,
        wait: float = 60.0,
        *,
        limit: Optional[int] = None,
        mode: Optional[str] = None,
        fair: Optional[bool] = None,
        max_hold: Optional[float] = None,
        data: Any = None,
    ) -> Lease:
        """Waits for the lease and acquires it.

        Raises ``LeaseholdError``: ``LEASE_HELD`` (with ``wait=0``), ``TIMEOUT``, ``NO_QUORUM``,
        ``PERMISSION_DENIED``, ...
        """
        wishes = {
            "resource": resource,
            "wait": round(wait * 1000),
            **({} if limit is None else {"limit": limit}),
            **({} if mode is None else {"mode": mode}),
            **({} if fair is None else {"fair": fair}),
            **({} if max_hold is None else {"maxHold": round(max_hold * 1000)}),
            **({} if data is None else {"data": data}),
        }
        try:
            answer, sent = self._acquired(self._opened(), wishes, wait)
        except LeaseholdError as error:
            if error.code != "SESSION_GONE":
                raise
            # The session ended while the program, or the gateway, was stopped.
            answer, sent = self._acquired(self._opened(), wishes, wait)
        lease = Lease(self, answer["leases"][0], sent)
        with self._lock:
            self._held.append(lease)
        # The time of an answer counts from the start of the last request, which may have waited for
        # long. A renewal gives more.
        if lease.remaining() < answer["ttlMs"] / 2000:
            self._renew_now()
        self._wake.set()
        return lease

    def _acquired(self, session: str, wishes: Dict[str, Any], wait: float) -> Tuple[Dict[str, Any], _Moment]:
        key = str(uuid.uuid4())
        headers = {"idempotency-key": key, "prefer": f"wait={_POLL:.0f}"}
        begun = _Moment()
        try:
            while True:
                sent = _Moment()
                try:
                    answer = self._ask("POST", "/v1/leases", {**wishes, "session": session}, headers, _POLL + _TIMEOUT)
                except OSError as error:
                    # The call continues at the gateway; the same key finds it again.
                    if begun.ago() > wait + _TIMEOUT:
                        raise LeaseholdError("UNREACHABLE", str(error)) from error
                    time.sleep(_RETRY)
                    continue
                if not answer.get("waiting"):
                    return answer, sent
        except BaseException as error:
            if isinstance(error, LeaseholdError) and error.status > 0:
                if error.code == "SESSION_GONE":
                    self._gone(session)
            else:
                # The program no longer wants the lease.
                self._undo("POST", f"/v1/sessions/{session}/cancel", {"key": key})
            raise

    def try_acquire(self, resource: str, **more: Any) -> Optional[Lease]:
        """Acquires the lease if it is free now, or returns None."""
        try:
            return self.acquire(resource, 0, **more)
        except LeaseholdError as error:
            if error.code == "LEASE_HELD":
                return None
            raise

    def holder(self, resource: str) -> Dict[str, Any]:
        """The last known holder of a resource: out of date as soon as it is read."""
        return self._ask("GET", "/v1/holder?" + urllib.parse.urlencode({"resource": resource}))

    def holders(self, prefix: str = "") -> Iterator[Dict[str, Any]]:
        """The leases last known to be held below a prefix."""
        after: Optional[str] = ""
        while after is not None:
            page = self._ask("GET", "/v1/holders?" + urllib.parse.urlencode({"prefix": prefix, "after": after}))
            yield from page["holders"]
            after = page.get("next")

    def close(self) -> None:
        """Releases all leases."""
        with self._lock:
            self._closed = True
            session, self._session = self._session, None
            held, self._held = self._held, []
        for lease in held:
            lease._end("closed")
        self._wake.set()
        if session is not None:
            try:
                self._ask("DELETE", f"/v1/sessions/{session}")
            except (OSError, LeaseholdError):
                pass  # The session expires by itself.
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> "Leases":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _opened(self) -> str:
        with self._lock:
            if self._closed:
                raise LeaseholdError("CLOSED", "these leases are closed")
            if self._session is None:
                ttl = {"ttl": round(self._ttl * 1000)}
                key = {"idempotency-key": str(uuid.uuid4())}
                try:
                    self._session = self._ask("POST", "/v1/sessions", ttl, key)["session"]
                    self._wake.set()
                except OSError as error:
                    raise LeaseholdError("UNREACHABLE", str(error)) from error
            return self._session

    def _gone(self, session: str) -> None:
        with self._lock:
            if self._session == session:
                self._session = None
            held = [lease for lease in self._held if lease._session == session]
            self._held = [lease for lease in self._held if lease._session != session]
        for lease in held:
            lease._end("expired")

    def _forget(self, lease: Lease) -> None:
        with self._lock:
            self._held = [each for each in self._held if each is not lease]

    def _undo(self, method: str, path: str, body: Optional[Dict[str, Any]]) -> None:
        """Sends the request now or, if that fails, with a later renewal."""
        try:
            self._ask(method, path, body)
        except OSError:
            with self._lock:
                self._undone.append((method, path, body))
        except LeaseholdError as error:
            if error.code not in ("LEASE_LOST", "SESSION_GONE"):
                raise

    def _renew(self) -> None:
        pause: Optional[float] = None
        while not self._closed:
            self._wake.wait(pause)
            self._wake.clear()
            pause = self._renew_now()

    def _renew_now(self) -> float:
        """Renews the session. Returns the pause until the next renewal."""
        session = self._session
        if session is None or self._closed:
            return self._ttl / 3
        sent = _Moment()
        try:
            answer = self._ask("POST", f"/v1/sessions/{session}/renew", {})
        except LeaseholdError as error:
            if error.code == "SESSION_GONE":
                self._gone(session)
            return _RETRY
        except OSError:
            # Ends are detected even when the gateway is unreachable.
            for lease in list(self._held):
                lease.remaining()
            return _RETRY
        with self._lock:
            undone, self._undone = self._undone, []
        for each in undone:
            self._undo(*each)
        known = {lease._id: lease for lease in list(self._held)}
        for each in answer["leases"]:
            if each["lease"] in known:
                known[each["lease"]]._heard(each, sent)
        with self._lock:
            self._held = [lease for lease in self._held if not lease._over]
            least = min((lease._valid for lease in self._held), default=self._ttl)
        return max(0.1, min(least, answer["validForMs"] / 1000) / 3)

    def _ask(
        self,
        method: str,
        path: str,
        body: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        timeout: float = _TIMEOUT,
    ) -> Dict[str, Any]:
        all_headers = {**self._headers, **(headers or {})}
        if self._cookies:
            all_headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            all_headers["content-type"] = "application/json"
        # The server may have closed an idle connection. Every request is safe to send twice.
        for attempt in (1, 2):
            connection, is_used = self._connection(timeout)
            try:
                connection.request(method, path, data, all_headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if attempt == 2 or not is_used or isinstance(error, TimeoutError):
                    raise ConnectionError(f"{type(error).__name__}: {error}") from error
            except BaseException:
                # Interrupted by a signal: the next bytes on this connection would be this request's
                # answer.
                connection.close()
                raise
        self._keep(connection)
        self._remember(answer.headers.get_all("set-cookie", []))
        if answer.status < 300:
            return json.loads(text) if text else {}
        try:
            problem = json.loads(text)
            code, detail = problem["code"], problem["detail"]
        except (ValueError, KeyError, TypeError):
            if answer.status in (502, 503, 504):
                # A load balancer answered because its gateway is gone.
                raise ConnectionError(f"status {answer.status}") from None
            code, detail = "HTTP", f"status {answer.status}"
        raise LeaseholdError(code, detail, answer.status)

    def _remember(self, lines: List[str]) -> None:
        # Concurrent answers must not overwrite each other's cookies. Requests read them without the
        # lock.
        with self._lock:
            cookies = dict(self._cookies)
            for line in lines:
                name, _, value = line.partition(";")[0].strip().partition("=")
                if len(line) <= _COOKIE_LENGTH and (name in cookies or len(cookies) < _COOKIES):
                    cookies[name] = value
            self._cookies = cookies

    def _connection(self, timeout: float) -> Tuple[http.client.HTTPConnection, bool]:
        """Returns a connection for one request, and whether it was used before."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(timeout)
            return connection, True
        if self._secure:
            context = self._context or ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context), False
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout), False

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


def open(
    url: str, *, ttl: float = 10.0, token: Optional[str] = None, context: Optional[ssl.SSLContext] = None
) -> Leases:
    """Returns the leases of the gateway at ``url``.

    :param ttl: leases end when the gateway has received nothing from this program for this long
    :param token: the token of the gateway's user
    :param context: for ``https``: CAs, and the program's certificate
    """
    return Leases(url, ttl, token, context)
