import type { HolderHint, Lease } from "../../lease/types.js";
import { check, describe, rejection, type Stage } from "./stage.js";

/** The fields of `holder()` except the name, which is the argument. */
const fieldsOfHint: Record<keyof HolderHint, true> = {
  state: true,
  holder: true,
  token: true,
  remainingMs: true,
  confirmed: true,
  label: true,
  data: true,
};

export const queryCases = {
  "holder() says who holds a resource and when it is free": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const ask = () => bob.holder(stage.name("holder"));
    await stage.eventually(ask, ({ state }) => state === "free", "the hint that it is free", 2 * stage.ttlMs);
    const lease = await stage.take(alice, "holder");
    const isHeld = ({ state }: { state: string }) => state === "held";
    const hint = await stage.eventually(ask, isHeld, "the hint that it is held", 2 * stage.ttlMs);
    const more = Object.keys(hint).filter((field) => !Object.hasOwn(fieldsOfHint, field));
    check(more.length === 0, `holder() has the fields ${more.join(", ")}, which its type lacks`);
    check(hint.holder === alice.self, `the reported holder is ${hint.holder}, not ${alice.self}`);
    check(lease.holder === alice.self, `the lease says that ${lease.holder} holds it, not ${alice.self}`);
    check(hint.token === lease.token, `the reported token is ${hint.token}, not ${lease.token}`);
    const { token } = JSON.parse(JSON.stringify(hint)) as { token: unknown };
    check(token === String(lease.token), `as JSON, the token is ${String(token)}`);
    await stage.until(lease.release(), "release");
    await stage.eventually(
      ask,
      ({ state }) => state === "free",
      "the hint after the release",
      stage.ttlMs / 2,
    );
  },

  "list() returns the held resources below a prefix, in order": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    for (const name of ["list/b", "list/a", "other"]) await stage.take(alice, name);
    const ask = () => bob.list(stage.name("list/"));
    const hints = await stage.eventually(ask, ({ length }) => length >= 2, "the list", 2 * stage.ttlMs);
    const names = hints.map((hint) => hint.resource.slice(stage.prefix.length));
    check(names.join() === "list/a,list/b", `the list below list/ was ${names.join(", ")}`);
    check(hints[0]!.holder === alice.self, `the list names ${hints[0]!.holder} as holder, not ${alice.self}`);
  },

  "the lease as plain data": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const lease = await stage.take(alice, "json");
    const { resource, holder, token, remainingMs } = lease.toJSON();
    check(
      resource === stage.name("json") && holder === alice.self,
      "the resource or the holder is not the lease's",
    );
    check(token === lease.token.toString(), `the token was written as ${token}`);
    check(
      remainingMs > 0 && remainingMs <= stage.ttlMs,
      `the remaining time was written as ${remainingMs} ms`,
    );
  },

  "lead() passes leadership on, one leader at a time": async (stage: Stage) => {
    const opened = [await stage.open("alice"), await stage.open("bob")];
    const tokens: bigint[] = [];
    let leading = 0;
    const work = async (lease: Lease) => {
      leading += 1;
      check(leading === 1, "there were two leaders");
      tokens.push(lease.token);
      await stage.pass(stage.ttlMs / 5);
      lease.assertHeld();
      leading -= 1;
      return lease.holder;
    };
    const terms = opened.map((leases) => leases.lead(stage.name("lead"), work, { ttl: stage.ttlMs }));
    const holders = await stage.until(Promise.all(terms), "both terms", 2 * stage.takeoverMs(opened[0]!));
    check(holders.join() === opened.map(({ self }) => self).join(), `the leaders were ${holders.join(", ")}`);
    check(tokens[1]! > tokens[0]!, `the leaders' tokens were ${tokens.join(", ")}`);
  },

  "lead() rethrows the work's error, and steps down when its signal aborts": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const bug = new Error("of the work");
    const failing = alice.lead(stage.name("steps"), () => Promise.reject(bug), { ttl: stage.ttlMs });
    const error = await stage.until(rejection(failing), "a term whose work throws");
    check(error === bug, `a term whose work throws ended with ${describe(error)}`);
    const next = await stage.takeSoon(bob, "steps", "the acquisition after a leader failed");
    await stage.until(next.release(), "release");
    const controller = new AbortController();
    let onElected: () => void = () => undefined;
    const elected = new Promise<void>((resolve) => {
      onElected = resolve;
    });
    const work = async ({ signal }: Lease) => {
      onElected();
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve, { once: true });
      });
    };
    const term = alice.lead(stage.name("steps"), work, { ttl: stage.ttlMs, signal: controller.signal });
    await stage.until(elected, "the election", stage.takeoverMs(alice));
    controller.abort();
    const value = await stage.until(term, "the end of a term whose signal has aborted", stage.ttlMs / 2);
    check(value === undefined, "a term that was ended by its signal had a result");
    await stage.takeSoon(bob, "steps", "the acquisition after a leader stepped down");
  },
};
