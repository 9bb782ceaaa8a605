import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Fence } from "@leasehold/fence";

/** A guarded text: a resource of one kind, with a function that makes its change from a text. */
export interface Guarded<Change> {
  readonly kind: string;
  /** The location, with which `openers.mjs` finds the resource. */
  readonly place: string;
  /** Another fence of the same resource, as another process would create it. */
  fence(): Fence<Change>;
  change(text: string): Change;
  /** The text as any reader sees it; "" before the first write. */
  read(): Promise<string>;
}

const max = 2n ** 63n - 1n;
const stale = { code: "TOKEN_STALE" };

/** The common behaviour of all fences. `make` creates a resource that was never written to. */
export function runFenceConformance<Change>(make: () => Promise<Guarded<Change>>): void {
  describe("a fence", () => {
    test("accepts tokens that rise or stay, refuses smaller ones, and then changes nothing", async () => {
      const { fence, change, read } = await make();
      const [one, two] = [fence(), fence()];
      expect(await one.greatest()).toBe(0n);
      await one.write(5n, change("five"));
      await one.write(5n, change("five again"));
      await two.write(6n, change("six"));
      await expect(one.write(5n, change("late"))).rejects.toMatchObject(stale);
      expect(await read()).toBe("six");
      expect(await one.greatest()).toBe(6n);
    });

    test("refuses smaller tokens after a claim, and keeps what was written", async () => {
      const { fence, change, read } = await make();
      await fence().claim(1n);
      await fence().write(9n, change("nine"));
      await fence().claim(10n);
      await expect(fence().write(9n, change("late"))).rejects.toMatchObject(stale);
      await expect(fence().claim(9n)).rejects.toMatchObject(stale);
      expect(await read()).toBe("nine");
      expect(await fence().greatest()).toBe(10n);
    });

    test("compares tokens as 64-bit integers, and not as text or as doubles", async () => {
      const { fence, change, read } = await make();
      await fence().write(9n, change("9"));
      await fence().write(10n, change("10"));
      await expect(fence().write(9n, change("late"))).rejects.toMatchObject(stale);
      await fence().write(2n ** 53n + 1n, change("2^53 + 1"));
      await expect(fence().write(2n ** 53n, change("late"))).rejects.toMatchObject(stale);
      await fence().write(max, change("greatest"));
      await expect(fence().write(max - 1n, change("late"))).rejects.toMatchObject(stale);
      expect(await read()).toBe("greatest");
      expect(await fence().greatest()).toBe(max);
    });

    // For callers without types.
    const bad: readonly unknown[] = [-1n, 0n, 2n ** 63n, 2n ** 64n, Number.NaN, 5, "5", "", undefined, null];
    test.each(bad.map((value) => [typeof value, String(value), value] as const))(
      "refuses the %s %s as a token, and changes nothing",
      async (_, __, value) => {
        const { fence, change, read } = await make();
        const token = value as bigint;
        await expect(fence().write(token, change("bad"))).rejects.toMatchObject({ code: "TOKEN_INVALID" });
        await expect(fence().claim(token)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
        expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
      },
    );

    test("of many concurrent writers ends with the greatest token's write", async () => {
      const { fence, change, read } = await make();
      const tokens = Array.from({ length: 24 }, (_, index) => BigInt(((index * 7) % 24) + 1));
      const fences = [fence(), fence(), fence()];
      const outcomes = await Promise.allSettled(
        tokens.map((token, index) => fences[index % 3]!.write(token, change(String(token)))),
      );
      const refusals = outcomes.flatMap((each) =>
        each.status === "rejected" ? [each.reason as unknown] : [],
      );
      expect(refusals).toEqual(refusals.map(() => expect.objectContaining(stale) as unknown));
      expect(outcomes[tokens.indexOf(24n)]!.status).toBe("fulfilled");
      expect([await read(), await fence().greatest()]).toEqual(["24", 24n]);
    });
  });

  describe("a holder that is stopped while its lease passes on", () => {
    test("before its write is refused when it resumes", async () => {
      const guarded = await make();
      expect(await overtake(guarded, "before")).toMatchObject({ outcome: "TOKEN_STALE" });
      expect(await guarded.read()).toBe("by the next holder");
    });

    test("and killed leaves a resource that the next holder can write to", async () => {
      const guarded = await make();
      await overtake(guarded, "before", "SIGKILL");
      expect(await guarded.read()).toBe("by the next holder");
    });
  });
}

export class Gate {
  readonly opened: Promise<void>;
  open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}

interface Report {
  readonly stopped?: string;
  readonly outcome?: string;
}

/**
 * Stops a holder, lets the next one write, and then sends `signal` to the first. Returns the first one's
 * report, unless it was killed.
 */
export async function overtake(
  { kind, place }: Guarded<unknown>,
  where: "before" | "between",
  signal: NodeJS.Signals = "SIGCONT",
): Promise<Report | undefined> {
  const begin = await holdersOf({ kind, place });
  const late = begin("late", where);
  expect(await next(late)).toEqual({ stopped: where });
  const successor = begin("by the next holder", "never");
  expect(await next(successor)).toMatchObject({ outcome: "written" });
  late.kill(signal);
  return signal === "SIGKILL" ? undefined : next(late);
}

/** Starts holders of one lease, in processes of their own, which write to this place. */
export async function holdersOf({
  kind,
  place,
}: Pick<Guarded<unknown>, "kind" | "place">): Promise<(text: string, stop: string) => ChildProcess> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-fence-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const leases = `delta+file://${folder}?ttlMax=2s&maxStoreLatency=300ms`;
  return (text, stop) => {
    const script = fileURLToPath(new URL("late-writer.mjs", import.meta.url));
    const child = fork(script, [leases, kind, place, text, stop]);
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
}

export async function next(child: ChildProcess): Promise<Report> {
  const exited = once(child, "exit").then(([code]) => {
    throw new Error(`a holder exited with ${code}`);
  });
  const message = once(child, "message").then(([report]) => report as Report);
  return Promise.race([message, exited]);
}
