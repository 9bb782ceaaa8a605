"""The client against a gateway: LEASEHOLD_GATEWAY is its address."""

import os
import socket
import threading
import time
import unittest
import uuid

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


if __name__ == "__main__":
    unittest.main()
