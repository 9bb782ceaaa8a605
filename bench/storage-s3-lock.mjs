/**
 * The common lock on one S3 object: created with `If-None-Match`, and deleted to release it. A waiter polls
 * every second and removes an object that is older than the ttl. The lock has no token, and a late delete
 * removes another holder's lock: only its times are of interest here.
 */
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 1_000;

export class S3Lock {
  #send;
  #key;
  #ttlMs;

  /** `send(method, key, headers, body)` resolves with a response. */
  constructor(send, key, ttlMs) {
    this.#send = send;
    this.#key = key;
    this.#ttlMs = ttlMs;
  }

  async acquire() {
    for (;;) {
      const { status } = await this.#send("PUT", this.#key, { "if-none-match": "*" }, "locked");
      if (status === 200) return;
      const seen = await this.#send("HEAD", this.#key);
      const age = Date.parse(seen.headers.get("date")) - Date.parse(seen.headers.get("last-modified"));
      if (age > this.#ttlMs) await this.release();
      else if (seen.status === 200) await sleep(pollMs);
    }
  }

  /** The only way to renew is to write the object again. */
  async renew() {
    await this.#send("PUT", this.#key, {}, "locked");
  }

  async release() {
    await this.#send("DELETE", this.#key);
  }
}
