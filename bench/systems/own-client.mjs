// Leasehold's own client, on whatever ground. This folder is a package of its own, so the name `leasehold` does not
// lead to what was built.
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
