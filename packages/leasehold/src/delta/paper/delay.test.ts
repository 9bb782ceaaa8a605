import { expect, test } from "vitest";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import { slotted } from "../../../../../test/support/paper-bench.js";
import { LeaseholdError } from "../../lease/errors.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { decodeFarmCell, encodeFarmCell } from "../farm/farm-cell.js";
import type { DeltaProvider } from "../provider/provider.js";
import { farmRegister, type StoreTraits } from "../store.js";

/** The outcome of an opening, by name and δ. */
function openingOn(kinds: readonly StoreTraits["kind"][]) {
  const world = new VirtualWorld();
  const farm = new MemoryFarm(world, kinds);
  const open = async (name: string, delayMs: number) => {
    const outcome = farm.open(name, world, { delayMs, leaseMsMax: 2_000 }).then(
      (provider: DeltaProvider) => provider.guarantees.ground,
      (error: unknown) => (error instanceof LeaseholdError ? `${error.code}: ${error.message}` : error),
    );
    await world.advance("1s");
    return outcome;
  };
  return { farm, open, world };
}

test.each([[slotted], [["slotted"]], [["slotted", "atomic", "atomic"]]] as const)(
  "on %j all must use the δ of the first process",
  async (kinds) => {
    const { open } = openingOn(kinds);
    expect(await open("alice", 50)).toBe("delta");
    expect(await open("bob", 80)).toMatch(/^CONFIG_MISMATCH: .*δ = 50 ms, and not 80 ms/);
    expect(await open("carol", 20)).toMatch(/^CONFIG_MISMATCH: .*δ = 50 ms, and not 20 ms/);
    expect(await open("dave", 50)).toBe("delta");
  },
);

test("where all stores compare and set δ is only a timeout, and each process has its own", async () => {
  const { open } = openingOn(["atomic", "atomic", "atomic"]);
  expect(await open("alice", 50)).toBe("delta");
  expect(await open("bob", 80)).toBe("delta");
});

test("two simultaneous founders with different δ are both refused", async () => {
  const { farm, open } = openingOn(slotted);
  expect(await open("alice", 50)).toBe("delta");
  for (const medium of farm.media) {
    const [cell] = medium.cells(farmRegister).map(decodeFarmCell);
    medium.plant(farmRegister, encodeFarmCell({ ...cell!, delayMsMax: 80 }), "bob");
  }
  expect(await open("carol", 50)).toMatch(/was used with different δ/);
  expect(await open("dave", 80)).toMatch(/was used with different δ/);
});
