import { MemoryCluster } from "leasehold/testing";
import { afterEach, describe, expect, it } from "vitest";
import type { GrantAnswer } from "./answers.js";
import { Gateway } from "./gateway.js";
import { limitsDefault } from "./limits.js";
import type { Call } from "./requests.js";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A gateway in virtual time, and another participant. */
function gatewayOf(limits = {}) {
  const cluster = new MemoryCluster({ ttlMax: "10s" });
  ends.push(() => cluster.close());
  const { clock, timers } = cluster.world;
  let ids = 0;
  const newId = (): string => `s${(ids += 1)}`;
  const gateway = new Gateway(
    cluster.open("gateway"),
    { clock, timers, newId },
    { ...limitsDefault, ...limits },
  );
  const call = (more: Partial<Call> = {}): Call => ({
    owner: "",
    receivedMs: clock.monotonicMs(),
    signal: new AbortController().signal,
    ...more,
  });
  const acquire = async (request: object, more: Partial<Call> = {}): Promise<GrantAnswer> =>
    (await gateway.acquire(request, call(more))) as GrantAnswer;
  /** Advances time until the call has settled. */
  const over = async <T>(work: Promise<T>): Promise<T> => {
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    const state = { isOver: false };
    void settled.then(() => (state.isOver = true));
    for (let turn = 0; turn < 200 && !state.isOver; turn += 1) await cluster.advance(100);
    return work;
  };
  return { cluster, gateway, call, acquire, over, other: cluster.open("other") };
}

describe("each limit, at its greatest value and one above:", () => {
  it("one user has no more sessions than are free, and the place of a session that ends is free again", () => {
    const { gateway, call } = gatewayOf({ sessionsMax: 4 });
    const open = (owner: string) => gateway.openSession({}, call({ owner })).session;
    const [first] = [open("a"), open("a"), open("b")];
    for (const owner of ["a", "b"]) expect(() => open(owner)).toThrow("the gateway has 4 sessions at most");
    expect(gateway.sessions).toBe(3);
    gateway.closeSession(first!, call({ owner: "a" }));
    open("b");
    expect(gateway.sessions).toBe(3);
  });

  it("one user holds and waits for no more leases than are free", async () => {
    const { gateway, acquire, over, other } = gatewayOf({ leasesMax: 4 });
    await other.acquire("busy");
    const gone = new AbortController();
    const waiting = over(acquire({ resource: "busy", wait: "1m" }, { signal: gone.signal }));
    await over(acquire({ resource: "one" }));
    await expect(over(acquire({ resource: "two" }))).rejects.toMatchObject({ code: "RESOURCES_FULL" });
    gone.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    await over(acquire({ resource: "two" }));
    expect([gateway.wanted, gateway.sessions]).toEqual([2, 2]);
  });

  it("a session has 256 leases, including those that it waits for", async () => {
    const { gateway, call, acquire, over, other } = gatewayOf();
    const { session } = gateway.openSession({}, call());
    await other.acquire("busy");
    const names = Array.from({ length: 255 }, (_, index) => `name-${index}`);
    for (let at = 0; at < names.length; at += 64)
      await over(acquire({ session, resources: names.slice(at, at + 64) }));
    const waiting = over(acquire({ session, resource: "busy", wait: "1s" }));
    await expect(over(acquire({ session, resource: "more" }))).rejects.toMatchObject({
      code: "RESOURCES_FULL",
    });
    await expect(waiting).rejects.toMatchObject({ code: "TIMEOUT" });
    await over(acquire({ session, resource: "more" }));
    expect(gateway.wanted).toBe(256);
  });

  it("a session remembers 1,024 keys, and then forgets the oldest", async () => {
    const { gateway, call, acquire, over } = gatewayOf();
    const { session } = gateway.openSession({ ttl: "1h" }, call());
    const ask = (index: number) =>
      over(acquire({ session, resource: "one", wait: 0 }, { key: `key-${index}` }));
    const release = (lease: string) => gateway.release(lease, call());
    const first = (await ask(0)).leases[0]!.lease;
    await release(first);
    for (let index = 1; index < 1_024; index += 1) await release((await ask(index)).leases[0]!.lease);
    expect((await ask(0)).leases[0]!.lease).toBe(first);
    await release((await ask(1_024)).leases[0]!.lease);
    expect((await ask(0)).leases[0]!.lease).not.toBe(first);
  });
});

describe("two at once:", () => {
  it("calls with one key are one call, and requests for a session with one key open one session", async () => {
    const { gateway, call, acquire, over } = gatewayOf();
    const both = await over(Promise.all([1, 2].map(() => acquire({ resource: "one" }, { key: "k" }))));
    expect(both[0]!.leases[0]!.lease).toBe(both[1]!.leases[0]!.lease);
    const [session, again] = [1, 2].map(() => gateway.openSession({ ttl: "5s" }, call({ key: "s" })).session);
    expect(again).toBe(session);
    // The same key of another user is a different key.
    expect(gateway.openSession({ ttl: "5s" }, call({ key: "s", owner: "b" })).session).not.toBe(session);
    const inside = () => acquire({ session, resource: "two" }, { key: "k" });
    const twice = await over(Promise.all([inside(), inside()]));
    expect(twice[0]).toEqual(twice[1]);
    expect(gateway.wanted).toBe(2);
  });

  it("of two releases, one finds the lease, and both leave it free", async () => {
    const { gateway, call, acquire, over, other } = gatewayOf();
    const { session } = gateway.openSession({}, call());
    const [lease] = (await over(acquire({ session, resource: "one" }))).leases;
    const released = await Promise.allSettled([1, 2].map(() => gateway.release(lease!.lease, call())));
    expect(released).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { code: "LEASE_LOST" } },
    ]);
    expect([gateway.wanted, (await other.holder("one")).state]).toEqual([0, "free"]);
  });

  it("two calls of a session for one name exclude each other", async () => {
    const { gateway, call, acquire, over } = gatewayOf();
    const { session } = gateway.openSession({}, call());
    await over(acquire({ session, resource: "one" }));
    const second = over(acquire({ session, resource: "one", wait: 0 }));
    await expect(second).rejects.toMatchObject({ code: "LEASE_HELD" });
  });

  it("a call that waits and its cancellation leave nothing held, whichever comes first", async () => {
    const { gateway, call, acquire, over, other } = gatewayOf();
    const { session } = gateway.openSession({}, call());
    for (const isGranted of [false, true]) {
      const busy = await other.acquire("busy", { wait: "1s" });
      const waiting = acquire({ session, resource: "busy", wait: "1m" }, { key: "k" }).catch(() => undefined);
      if (isGranted) await busy.release();
      const cancelled = [1, 2].map(() => gateway.cancel(session, "k", call()));
      await over(Promise.all([waiting, ...cancelled]));
      if (!isGranted) await busy.release();
      expect([isGranted, gateway.wanted, (await other.holder("busy")).state]).toEqual([isGranted, 0, "free"]);
    }
  });
});

describe("ended halfway:", () => {
  it("a call whose session ends while it waits leaves nothing behind", async () => {
    const { gateway, call, acquire, over, other, cluster } = gatewayOf();
    const { session } = gateway.openSession({ ttl: "2s" }, call());
    const busy = await other.acquire("busy");
    const waiting = over(acquire({ session, resource: "busy", wait: "1m" }, { key: "k" }));
    await expect(waiting).rejects.toMatchObject({ code: "SESSION_GONE" });
    await busy.release();
    await cluster.advance("1s");
    expect([gateway.wanted, gateway.sessions, (await other.holder("busy")).state]).toEqual([0, 0, "free"]);
  });

  it("a gateway that closes ends waiting calls, opens nothing more, and lets held leases expire", async () => {
    const { gateway, call, acquire, over, other, cluster } = gatewayOf();
    const busy = await other.acquire("busy");
    await over(acquire({ resource: "held" }));
    const waiting = over(acquire({ resource: "busy", wait: "1m" }));
    await Promise.all([gateway.close(), gateway.close()]);
    await expect(waiting).rejects.toMatchObject({ code: "SESSION_GONE" });
    expect(() => gateway.openSession({}, call())).toThrow("the gateway is stopping");
    await busy.release();
    expect((await other.holder("busy")).state).toBe("free");
    expect((await other.holder("held")).state).toBe("held");
    await cluster.advance("11s");
    expect((await other.holder("held")).state).toBe("free");
  });

  it("an answer after the session's end promises nothing, even if the timer is late", async () => {
    const { gateway, call, acquire, over, cluster } = gatewayOf();
    const [lease] = (await over(acquire({ resource: "one", ttl: "2s" }))).leases;
    cluster.world.block("3s");
    expect(() => gateway.renewLease(lease!.lease, call())).toThrow("no such session");
  });
});
