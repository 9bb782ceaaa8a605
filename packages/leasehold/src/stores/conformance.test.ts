import { describe, expect, test } from "vitest";
import { MemoryMedium, MemoryStore } from "../delta/memory/memory-store.js";
import type { Store, StoreAnswer, StoreRequest } from "../delta/store.js";
import { LeaseholdError } from "../lease/errors.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { runStoreConformance, storeConformanceCases, type StoreGround } from "./conformance.js";
import { encodeEnvelope } from "../delta/record/envelope.js";
import { probeAtomic } from "./common/probe.js";

/** Deviates from the store's behaviour for some requests. */
type Mistake = (
  request: StoreRequest,
  perform: (request: StoreRequest) => Promise<StoreAnswer>,
) => Promise<StoreAnswer>;

const faithful: Mistake = (request, perform) => perform(request);

class WrappedStore implements Store {
  readonly #inner: MemoryStore;
  readonly #mistake: Mistake;
  #isClosed = false;

  constructor(inner: MemoryStore, mistake: Mistake) {
    this.#inner = inner;
    this.#mistake = mistake;
  }

  get traits() {
    return this.#inner.traits;
  }

  async perform(request: StoreRequest): Promise<StoreAnswer> {
    const failed = (code: "STORE_UNAVAILABLE" | "UNSUPPORTED" | "STORE_FULL"): StoreAnswer => ({
      kind: "failed",
      error: new LeaseholdError(code),
    });
    if (this.#isClosed) return failed("STORE_UNAVAILABLE");
    if (request.op === (this.traits.kind === "atomic" ? "put" : "replace")) return failed("UNSUPPORTED");
    if ("next" in request && request.next.length > this.traits.bytesMax) return failed("STORE_FULL");
    return this.#mistake(request, (asked) => this.#inner.perform(asked));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }
}

function memoryGround(kind: "atomic" | "slotted", mistake: Mistake = faithful): StoreGround {
  const { timers, random } = new VirtualWorld();
  const medium = new MemoryMedium({ timers, random, name: "memory", kind });
  return {
    kind,
    open: async (writer) => new WrappedStore(new MemoryStore(medium, writer), mistake),
    forget: async () => medium.forget(),
    close: async () => undefined,
  };
}

for (const kind of ["atomic", "slotted"] as const) {
  describe(`memory, ${kind}`, () => {
    runStoreConformance({ describe, test }, kind, async () => memoryGround(kind));
  });
}

/** Mistakes of real stores and careless adapters. */
const mistakes: Record<string, { kind: "atomic" | "slotted"; mistake: Mistake; probeFinds?: RegExp }> = {
  "conditions are ignored": {
    kind: "atomic",
    probeFinds: /created a cell that exists/,
    mistake: async (request, perform) => {
      const answer = await perform(request);
      if (request.op !== "replace" || answer.kind !== "conflict") return answer;
      return perform({ ...request, id: answer.id, expected: answer.cells[0] });
    },
  },
  "the expected content is checked before the write and not with it": {
    kind: "atomic",
    probeFinds: /replaced one cell twice/,
    mistake: async (request, perform) => {
      if (request.op !== "replace") return perform(request);
      const seen = await perform({ op: "read", register: request.register });
      const isExpected = seen.kind === "cells" && String(seen.cells[0]) === String(request.expected);
      if (!isExpected || seen.id !== request.id) return { ...seen, kind: "conflict" } as StoreAnswer;
      await new Promise((resolve) => setTimeout(resolve, 1));
      return mistakes["conditions are ignored"]!.mistake(request, perform);
    },
  },
  "only the length is compared": {
    kind: "atomic",
    probeFinds: /not what was expected|never what/,
    mistake: async (request, perform) => {
      if (request.op !== "replace" || request.expected === undefined) return perform(request);
      const seen = await perform({ op: "read", register: request.register });
      const [cell] = seen.kind === "cells" ? seen.cells : [];
      return perform(cell?.length === request.expected.length ? { ...request, expected: cell } : request);
    },
  },
  "the marker is not checked": {
    kind: "atomic",
    probeFinds: /another store's marker/,
    mistake: async (request, perform) => {
      const answer = await perform(request);
      if (request.op !== "replace" || answer.kind !== "conflict") return answer;
      return perform({ ...request, id: answer.id });
    },
  },
  "names differ by more than case": {
    kind: "atomic",
    mistake: (request, perform) =>
      perform("register" in request ? { ...request, register: request.register.toLowerCase() } : request),
  },
  "names are normalized": {
    kind: "slotted",
    mistake: (request, perform) =>
      perform("register" in request ? { ...request, register: request.register.normalize() } : request),
  },
  "long names are cut": {
    kind: "atomic",
    mistake: (request, perform) =>
      perform("register" in request ? { ...request, register: request.register.slice(0, 255) } : request),
  },
  "a list is not bounded": {
    kind: "atomic",
    mistake: (request, perform) =>
      perform(request.op === "list" ? { ...request, registersMax: 1e6 } : request),
  },
  "the marker is not the store's": {
    kind: "slotted",
    mistake: async (request, perform) => {
      const answer = await perform(request);
      return answer.kind === "failed" ? answer : { ...answer, id: "the-same-always" };
    },
  },
  "slots of one register are lost when another is written": {
    kind: "slotted",
    mistake: async (request, perform) => {
      if (request.op === "put")
        await perform({ ...request, register: request.register.replace(/\d+$/, "3") });
      return perform(request);
    },
  },
};

describe("the suite and the probe catch", () => {
  for (const [name, { kind, mistake, probeFinds }] of Object.entries(mistakes)) {
    test(`${name}`, async () => {
      const outcomes = await Promise.allSettled(
        storeConformanceCases(kind).map(({ run }) => run(memoryGround(kind, mistake))),
      );
      expect(outcomes.filter(({ status }) => status === "rejected")).not.toEqual([]);
      if (probeFinds === undefined) return;
      const findings = await probeAtomic(await memoryGround(kind, mistake).open("prober"));
      const bad = findings.filter(({ ok }) => !ok);
      expect(bad.map(({ tried }) => tried).join()).toMatch(probeFinds);
    });
  }
});

describe("the probe", () => {
  test("accepts a correct store, repeatedly and with many probes at once", async () => {
    const ground = memoryGround("atomic");
    for (let round = 0; round < 3; round += 1) {
      const stores = await Promise.all([1, 2, 3, 4].map((writer) => ground.open(`prober ${writer}`)));
      const findings = await Promise.all(stores.map((store) => probeAtomic(store)));
      expect(findings.flat().filter(({ ok }) => !ok)).toEqual([]);
      expect(findings[0]!.length).toBeGreaterThanOrEqual(5);
    }
  });

  test("does not take concurrent probes for a fault of the store, however often they interfere", async () => {
    let left = 40;
    const crowded: Mistake = async (request, perform) => {
      if (request.op !== "replace" || left === 0) return perform(request);
      left -= 1;
      const seen = await perform({ op: "read", register: request.register });
      const next = encodeEnvelope("leasehold-probe/1", `{"nonce":"${left}","filler":""}`);
      const expected = seen.kind === "cells" ? seen.cells[0] : undefined;
      await perform({ ...request, expected, next });
      return perform(request);
    };
    const store = await memoryGround("atomic", crowded).open("prober");
    const findings = await probeAtomic(store, undefined, async () => undefined);
    expect({ left, bad: findings.filter(({ ok }) => !ok) }).toEqual({ left: 0, bad: [] });
  });

  test("passes on the store's error", async () => {
    const readOnly: Mistake = async (request, perform) =>
      request.op === "replace"
        ? { kind: "failed", error: new LeaseholdError("STORE_READ_ONLY", "nothing can be written") }
        : perform(request);
    const store = await memoryGround("atomic", readOnly).open("prober");
    await expect(probeAtomic(store)).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
  });
});
