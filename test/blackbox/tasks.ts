import type { Lease, Leases } from "../../packages/leasehold/src/index.js";
import type { TenureForm } from "../../packages/leasehold/src/testing/history/journals/format.js";
import type { Random } from "../../packages/leasehold/src/common/ports.js";

/** The work of a holder: the form of lease that it takes, and on which names. */
export type Task =
  | { readonly form: "exclusive"; readonly name: string }
  | { readonly form: "fair"; readonly name: string }
  | { readonly form: "shared"; readonly name: string; readonly readers: number }
  | { readonly form: "counted"; readonly name: string; readonly limits: readonly number[] }
  | { readonly form: "several"; readonly names: readonly string[]; readonly count: number };

/** The leases of a task that are held together: one look covers all of them. */
export interface Taken {
  readonly leases: readonly Lease[];
  /** The form in which they are held, for the journal. */
  readonly form: TenureForm;
  remaining(): number;
  release(): Promise<void>;
}

export interface TakeOptions {
  readonly signal: AbortSignal;
  readonly autoRenew: boolean;
  /** How long to wait, ms. Default: one try. */
  readonly wait?: number | undefined;
}

/** The task's name in messages and news. */
export function nameOf(task: Task): string {
  return task.form === "several" ? task.names.join(" ") : task.name;
}

/** Acquires once, in a random way. Resolves with `undefined` if others hold the lease. */
export async function take(
  leases: Leases,
  task: Task,
  options: TakeOptions,
  random: Random,
): Promise<Taken | undefined> {
  switch (task.form) {
    case "exclusive":
      return alone(await one(leases, task.name, options), {});
    case "fair": {
      const { wait } = options;
      return alone(
        await one(leases, task.name, { ...options, ...(wait !== undefined && { fair: true }) }),
        {},
      );
    }
    case "shared": {
      const mode = random.next() < task.readers ? "shared" : "exclusive";
      // A call without a mode is a writer.
      return alone(await one(leases, task.name, { ...options, ...(mode === "shared" && { mode }) }), {
        mode,
      });
    }
    case "counted": {
      const limit = task.limits[Math.floor(random.next() * task.limits.length)]!;
      const lease = await one(leases, task.name, { ...options, limit });
      return alone(lease, { pool: task.name, limit });
    }
    case "several":
      return several(leases, task.names, task.count, options, random);
  }
}

type OneOptions = TakeOptions & { mode?: "shared" | "exclusive"; limit?: number; fair?: boolean };

function one(leases: Leases, name: string, { wait, ...options }: OneOptions): Promise<Lease | undefined> {
  return wait === undefined ? leases.tryAcquire(name, options) : leases.acquire(name, { ...options, wait });
}

function alone(lease: Lease | undefined, form: TenureForm): Taken | undefined {
  if (lease === undefined) return undefined;
  return {
    leases: [lease],
    form,
    remaining: () => lease.remaining(),
    release: () => lease.release(),
  };
}

/**
 * Acquires some of the names in random order. A look covers the set: it is lost as soon as one of its leases
 * is lost.
 */
async function several(
  leases: Leases,
  names: readonly string[],
  count: number,
  { wait = 0, ...options }: TakeOptions,
  random: Random,
): Promise<Taken | undefined> {
  const drawn = names.map((name) => ({ name, at: random.next() })).sort((left, right) => left.at - right.at);
  const wanted = drawn.slice(0, count).map(({ name }) => name);
  const held = leases.acquireAll(wanted, { ...options, wait });
  const set = await held.catch((error: unknown) => {
    if (wait === 0 && (error as { code?: string }).code === "LEASE_HELD") return undefined;
    throw error;
  });
  if (set === undefined) return undefined;
  return {
    leases: set.leases,
    form: {},
    remaining: () => set.remaining(),
    release: () => set.release(),
  };
}
