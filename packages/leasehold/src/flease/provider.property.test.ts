import * as fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { benchProvider } from "../../../../test/support/provider-bench.js";
import type { Grant } from "../lease/provider.js";
import { Kind, Refusal } from "./protocol/message.js";
import { RenewalQueue } from "./renewal-queue.js";

const names = ["a", "b", "c"];
const ttlMs = 500;

type Step =
  | { readonly do: "attempt" | "renew" | "forgo" | "release" | "look"; readonly of: number }
  | { readonly do: "answer"; readonly which: number; readonly how: "yes" | "held" | "barred" | "outbid" }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "step-wall"; readonly ms: number }
  | { readonly do: "turn" | "restart" | "close" };

const of = fc.nat(names.length - 1);
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ do: fc.constant("attempt" as const), of }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constant("renew" as const), of }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("forgo", "release", "look" as const), of }) },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("answer" as const),
        which: fc.nat(4),
        how: fc.constantFrom("yes", "yes", "yes", "held", "barred", "outbid"),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("turn" as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.nat(600) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("step-wall" as const), ms: fc.constantFrom(-500, 500) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("restart", "close" as const) }) },
  ),
  { minLength: 20, maxLength: 60 },
) as fc.Arbitrary<Step[]>;

/** The waist's knowledge of one resource: it makes one call at a time, and never renews a released grant. */
interface Known {
  attempting: boolean;
  grant: Grant | undefined;
  renewing: boolean;
}

/** The provider driven by a script, and a model of what was requested of it. */
class Stage {
  readonly bench = benchProvider();
  readonly known: Known[] = names.map(() => ({ attempting: false, grant: undefined, renewing: false }));
  /** Violations, one entry each. */
  readonly wrong: string[] = [];
  asked = 0;
  settled = 0;
  begun = 0;
  ended = 0;
  #incarnation = 1;
  #closed = false;

  constructor() {
    const { proposer } = this.bench.peer;
    const renew = proposer.renew.bind(proposer);
    vi.spyOn(proposer, "renew").mockImplementation((instance, ...rest) => {
      this.begun += 1;
      const { grant, renewing } = this.known[names.indexOf(instance.resource)] ?? {};
      if (grant?.token !== BigInt(instance.tokenNumber) || !renewing)
        this.wrong.push(`renews ${instance.resource}`);
      renew(instance, ...rest);
    });
    const { ended } = RenewalQueue.prototype;
    const count = () => (this.ended += 1);
    vi.spyOn(RenewalQueue.prototype, "ended").mockImplementation(function (this: RenewalQueue<never>) {
      count();
      ended.call(this);
    });
  }

  /** Calls follow each other within one turn, except where the script inserts a new turn. */
  run(step: Step): Promise<void> | void {
    const { world, peer, runner, provider } = this.bench;
    switch (step.do) {
      case "turn":
        return world.advance(0);
      case "pass":
        return world.advance(step.ms);
      case "step-wall":
        world.stepWall(step.ms);
        break;
      case "restart":
        peer.restart(`p.${(this.#incarnation += 1)}`, runner.now().mono, world.clock.wallMs());
        break;
      case "close":
        this.#closed = true;
        void provider.close();
        break;
      case "answer":
        this.#answer(step.which, step.how);
        break;
      default:
        this.#call(step.do, step.of);
    }
  }

  #call(what: "attempt" | "renew" | "forgo" | "release" | "look", index: number): void {
    const { provider } = this.bench;
    const known = this.known[index]!;
    const { grant } = known;
    if (what === "attempt") {
      if (grant === undefined && !known.attempting && !this.#closed) this.#attempt(names[index]!, known);
    } else if (grant === undefined) {
      return;
    } else if (what === "renew") {
      if (known.renewing) return;
      known.renewing = true;
      this.asked += 1;
      void provider.renew(grant, ttlMs).then(() => {
        this.settled += 1;
        if (known.grant === grant) known.renewing = false;
      });
    } else if (what === "forgo") {
      provider.forgoRenewal(grant);
    } else if (what === "look") {
      grant.remainingMs();
    } else {
      known.grant = undefined;
      known.renewing = false;
      void provider.release(grant);
      if (grant.remainingMs() !== 0) this.wrong.push("a lease that was given back is held");
    }
  }

  #attempt(resource: string, known: Known): void {
    known.attempting = true;
    const request = { resource, ttlMs, timeoutMs: 300, contended: false, waiting: false };
    void this.bench.provider.attempt(request).then((outcome) => {
      known.attempting = false;
      if (outcome.kind === "granted") known.grant = outcome.grant;
    });
  }

  #answer(which: number, how: "yes" | "held" | "barred" | "outbid"): void {
    const { sent, answer, world } = this.bench;
    const to = sent.at(-1 - which);
    if (to === undefined || this.#closed) return;
    const leaseExpiresWallMs = world.clock.wallMs() + 200;
    const nack = { leaseOwner: "q.1", leaseExpiresWallMs };
    if (how === "held") answer(to, Kind.nack, { refusal: Refusal.held, ...nack });
    else if (how === "barred") answer(to, Kind.nack, { refusal: Refusal.barred });
    else if (how === "outbid") answer(to, Kind.nack, { refusal: Refusal.promised, promised: to.number + 1 });
    else answer(to, to.kind === Kind.read ? Kind.promise : Kind.ack);
  }

  check(): string[] {
    const { wrong } = this;
    const underWay = this.begun - this.ended;
    const renewing = this.known.filter((known) => known.renewing).length;
    if (underWay < 0) wrong.push("more have ended than have begun");
    if (!this.#closed && underWay > renewing) wrong.push("something is under way of what was let go");
    return wrong;
  }

  checkEnd(): string[] {
    if (this.settled !== this.asked) this.wrong.push("a renewal does not settle");
    if (!this.#closed && this.ended !== this.begun) this.wrong.push("something stays under way");
    return this.wrong;
  }
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("each renewal settles, and a begun one ends exactly once, whatever happens to its grant meanwhile", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      vi.restoreAllMocks();
      const stage = new Stage();
      for (const step of script) {
        const turn = stage.run(step);
        if (turn !== undefined) await turn;
        expect(stage.check()).toEqual([]);
      }
      // Nobody answers any longer.
      for (let turn = 0; turn < 20; turn += 1) await stage.run({ do: "pass", ms: 100 });
      expect([...stage.check(), ...stage.checkEnd()]).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
