"""Tests the client against a gateway, whose address is in LEASEHOLD_GATEWAY."""

import http.server
import json
import os
import socket
import sys
import threading
import time
import unittest
import uuid
from typing import List

import leasehold

URL = os.environ.get("LEASEHOLD_GATEWAY", "http://127.0.0.1:7470")


def fresh(name: str) -> str:
    return f"python/{name}/{uuid.uuid4()}"


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.one = leasehold.open(URL, ttl=2)
        self.other = leasehold.open(URL, ttl=2)
        self.addCleanup(self.one.close)
        self.addCleanup(self.other.close)

    def test_a_lease_is_exclusive_until_it_is_released(self) -> None:
        name = fresh("exclusive")
        with self.one.acquire(name) as lease:
            lease.assert_held(0.1)
            self.assertIsNone(self.other.try_acquire(name))
            self.assertEqual(self.other.holder(name)["token"], str(lease.token))
            first = lease.token
        self.assertEqual(lease.remaining(), 0)
        with self.assertRaises(leasehold.LeaseLost):
            lease.assert_held()
        with self.other.acquire(name, 0) as again:
            self.assertGreater(again.token, first)

    def test_a_lease_is_renewed_and_a_waiter_gets_it_in_the_end(self) -> None:
        name = fresh("renewed")
        lease = self.one.acquire(name)
        waited = []
        waiter = threading.Thread(target=lambda: waited.append(self.other.acquire(name, 30)))
        waiter.start()
        for _ in range(10):
            time.sleep(0.5)
            lease.assert_held()
        self.assertEqual(waited, [])
        lease.release()
        waiter.join(10)
        waited[0].assert_held(0.5)

    def test_a_client_that_has_gone_loses_its_lease_and_knows_it_by_itself(self) -> None:
        name = fresh("gone")
        lease = self.one.acquire(name)
        self.one._ask = self._fail  # type: ignore[method-assign]
        begun = time.monotonic()
        with self.other.acquire(name, 30) as taken:
            self.assertGreater(taken.token, lease.token)
            self.assertEqual(lease.remaining(), 0)
        self.assertGreater(time.monotonic() - begun, 0.5)
        with self.assertRaises(leasehold.LeaseLost):
            lease.assert_held()
        self.assertTrue(lease.lost.wait(5))
        del self.one._ask

    @staticmethod
    def _fail(*_args: object, **_more: object) -> None:
        raise ConnectionError("cut off")

    def test_a_release_that_is_lost_is_sent_again(self) -> None:
        name = fresh("undone")
        kept, lease = self.one.acquire(fresh("kept")), self.one.acquire(name)
        self.one._ask = self._fail  # type: ignore[method-assign]
        lease.release()
        del self.one._ask
        with self.other.acquire(name, 10):
            kept.assert_held()

    def test_a_connection_that_was_closed_while_idle_does_no_harm(self) -> None:
        self.one.holder(fresh("idle"))
        for connection in self.one._idle:
            connection.sock.shutdown(socket.SHUT_RDWR)
        self.assertEqual(self.one.holder(fresh("idle"))["state"], "free")

    def test_a_session_that_has_ended_is_opened_anew(self) -> None:
        lease = self.one.acquire(fresh("before"))
        self.other._ask("DELETE", f"/v1/sessions/{lease._session}")
        self.one.acquire(fresh("after")).assert_held()
        self.assertTrue(lease.lost.wait(5))
        self.assertEqual(lease.remaining(), 0)

    def test_refusals_have_their_codes(self) -> None:
        for name, more, code in (
            ("", {}, "INVALID_NAME"),
            ("a\0b", {}, "INVALID_NAME"),
            (fresh("x"), {"limit": 65}, "INVALID_CONFIG"),
            (fresh("x"), {"mode": "shared"}, "INVALID_NAME"),
        ):
            with self.assertRaises(leasehold.LeaseholdError) as refused:
                self.one.acquire(name, **more)
            self.assertEqual(refused.exception.code, code)
        held = self.one.acquire(fresh("held"))
        with self.assertRaises(leasehold.LeaseholdError) as late:
            self.other.acquire(held.resource, 0.3)
        self.assertEqual(late.exception.code, "TIMEOUT")
        for amount in (-1.0, float("nan")):
            with self.assertRaises(leasehold.LeaseholdError) as invalid:
                held.assert_held(amount)
            self.assertEqual(invalid.exception.code, "INVALID_DURATION")
        nowhere = leasehold.open("http://127.0.0.1:9")
        with self.assertRaises(leasehold.LeaseholdError) as unreachable:
            nowhere.acquire(fresh("x"), 0)
        self.assertEqual(unreachable.exception.code, "UNREACHABLE")
        nowhere.close()

    def test_many_threads_exclude_each_other(self) -> None:
        name, inside, most, done = fresh("threads"), [0], [0], []

        def work(leases: leasehold.Leases) -> None:
            for _ in range(5):
                with leases.acquire(name, 60) as lease:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    time.sleep(0.005)
                    lease.assert_held()
                    inside[0] -= 1
                done.append(lease.token)

        threads = [threading.Thread(target=work, args=(each,)) for each in (self.one, self.other) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((most[0], len(done)), (1, 30))
        self.assertEqual(done, sorted(done))

    def test_forms(self) -> None:
        seats = fresh("seats")
        slots = {leases.acquire(seats, limit=2).slot for leases in (self.one, self.other)}
        self.assertEqual(slots, {0, 1})
        catalogue = fresh("catalogue") + "/~rw"
        reader, beside = (leases.acquire(catalogue, mode="shared") for leases in (self.one, self.other))
        self.assertIsNone(self.one.try_acquire(catalogue))
        reader.release()
        beside.release()
        self.one.acquire(catalogue, data={"job": 7}).assert_held()
        prefix = fresh("many") + "/"
        for index in range(3):
            self.one.acquire(f"{prefix}{index}")
        self.assertEqual([each["resource"][-1] for each in self.other.holders(prefix)], ["0", "1", "2"])


class Balancer(http.server.BaseHTTPRequestHandler):
    """Answers like a gateway behind a load balancer, with cookies. The first ``failures`` calls get
    the balancer's own error.
    """

    set_cookies: List[str] = []
    failures = 0
    seen: List[str] = []

    def do_POST(self) -> None:
        Balancer.seen.append(self.headers.get("cookie", ""))
        self.rfile.read(int(self.headers.get("content-length", 0)))
        fails = self.path.endswith("/leases") and Balancer.failures > 0
        Balancer.failures -= fails
        lease = {"lease": "s.1", "session": "s", "resource": "x", "token": "7", "slot": 0, "holder": "h"}
        times = {"ttlMs": 10000, "validForMs": 9000}
        answer = {"session": "s", **times, "leases": [{**lease, **times, "releaseRequested": False}]}
        body = b"<html>" if fails else json.dumps(answer).encode()
        self.send_response(502 if fails else 200)
        for cookie in Balancer.set_cookies:
            self.send_header("set-cookie", cookie)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = do_POST

    def log_message(self, *_: object) -> None:
        pass


class BalancerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Balancer)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        Balancer.seen, Balancer.set_cookies, Balancer.failures = [], [], 0

    def open(self) -> leasehold.Leases:
        leases = leasehold.open(f"http://127.0.0.1:{self.server.server_port}")
        self.addCleanup(leases.close)
        return leases

    def test_eight_cookies_of_4096_characters_are_kept_and_no_more(self) -> None:
        longest = "c0=" + "x" * 4093
        Balancer.set_cookies = [longest] + [f"c{index}={index}; Path=/" for index in range(1, 8)] + ["c8=8"]
        leases = self.open()
        leases.acquire("x")
        Balancer.set_cookies = ["c1=" + "y" * 4094, "c2=new"]
        leases.acquire("x")
        leases.acquire("x")
        kept = dict(pair.split("=") for pair in Balancer.seen[-1].split("; "))
        expected = {"c0": "x" * 4093, **{f"c{index}": str(index) for index in range(1, 8)}, "c2": "new"}
        self.assertEqual(kept, expected)

    def test_many_threads_keep_the_cookie(self) -> None:
        leases = self.open()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-6)

        def remember(name: str) -> None:
            for _ in range(2000):
                leases._remember([])
            leases._remember([f"{name}=1"])

        for _ in range(10):
            leases._cookies = {}
            threads = [threading.Thread(target=remember, args=(f"c{index}",)) for index in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(leases._cookies), ["c0", "c1", "c2", "c3"])

    def test_a_gateway_that_is_gone_is_asked_again(self) -> None:
        Balancer.set_cookies = ["gateway=one"]
        leases = self.open()
        Balancer.failures = 1
        self.assertEqual(leases.acquire("x").token, 7)
        self.assertEqual(Balancer.failures, 0)
        self.assertIn("gateway=one", Balancer.seen)


if __name__ == "__main__":
    unittest.main()
