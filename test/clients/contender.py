"""Acquires a lease at random gateways, and records with its token the times at which it was held,
until killed.

Each time is read before the check: if the lease is held in the check, it was held at that time.
"""

import random
import sys
import time

import leasehold

urls, resource, path = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
with open(path, "a", buffering=1) as journal:
    while True:
        try:
            with leasehold.open(random.choice(urls), ttl=random.choice([1, 2, 6])) as leases:
                for _ in range(20):
                    with leases.acquire(resource, random.choice([0.2, 2, 5])) as lease:
                        end = time.monotonic() + random.choice([0.3, 3, 12])
                        while time.monotonic() < end:
                            at = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                            lease.assert_held()
                            journal.write(f"{at} {lease.token}\n")
                            time.sleep(0.005)
        except leasehold.LeaseholdError as error:
            journal.write(f"# {error.code}\n")
            time.sleep(0.1)
