// Leasehold's own client, on any ground. This folder is a separate package, so the name `leasehold` does not
// resolve to the build.
import { open } from "../../packages/leasehold/dist/index.js";

export async function openLeases(urls, options = {}) {
  const leases = await open(...urls, { name: "bench", ...options });
  return {
    acquire: (name) => leases.acquire(name, { ttl: "10s" }),
    wait: (name) => leases.acquire(name, { ttl: "10s", wait: "10s" }),
    async renew(lease) {
      await lease.renew();
      return lease;
    },
    release: (lease) => lease.release(),
    close: () => leases.close(),
  };
}
