import { describe, expect, test } from "vitest";
import {
  DeviceProcess,
  type SimulatedDevice,
  deviceFor,
  driven,
  smallLayout,
} from "../../../../../test/support/simulated-device.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import type { StoreAnswer } from "../../delta/store.js";
import type { BlockStore } from "./block-store.js";
import {
  encodeSuperblock,
  hintPosition,
  type Layout,
  regionOf,
  slotPosition,
  unitPosition,
} from "./layout.js";
import { runStoreConformance } from "../conformance.js";

/**
 * Runs the production code of a block store on a simulated disk in virtual time, one case after the other.
 */

const oneSlot: Layout = { ...smallLayout, slots: 1, regions: 2 };

runStoreConformance({ describe, test }, "slotted", async () => {
  const world = new VirtualWorld();
  const device = deviceFor(world);
  const layOut = () =>
    device.bytes.set(encodeSuperblock({ ...smallLayout, id: `medium ${world.random.next()}` }));
  layOut();
  // Advances time in every turn of the event loop until the case is over.
  const running = { isOver: false };
  const time = (async () => {
    while (!running.isOver) await world.advance(5);
  })();
  return {
    kind: "slotted",
    async open(writer) {
      const process = new DeviceProcess(device);
      const layout = await process.layout();
      const store = process.open(layout!, writer);
      await store.takeSlot(undefined);
      return store;
    },
    async forget() {
      device.forget();
      layOut();
    },
    async close() {
      running.isOver = true;
      await time;
    },
  };
});

const bytes = (content: string) => new TextEncoder().encode(content);

interface Stage {
  readonly world: VirtualWorld;
  readonly device: SimulatedDevice;
  open(writer: string): { readonly process: DeviceProcess; readonly store: BlockStore };
}

function staged(body: (stage: Stage) => Promise<void>, layout: Layout = oneSlot): () => Promise<void> {
  return async () => {
    const world = new VirtualWorld({ seed: 1 });
    const device = deviceFor(world, layout);
    device.bytes.set(encodeSuperblock(layout));
    const stores: BlockStore[] = [];
    const open = (writer: string) => {
      const process = new DeviceProcess(device);
      const store = process.open(layout, writer);
      stores.push(store);
      return { process, store };
    };
    await driven(world, async () => {
      await body({ world, device, open });
      for (const store of stores) void store.close();
    });
  };
}

const put = (store: BlockStore, register: string, content: string, quiet = false) =>
  store.perform({ op: "put", register, next: bytes(content), quiet });
const sleep = ({ world }: Stage, ms: number) =>
  new Promise<void>((resolve) => void world.timers.after(ms, resolve));

test(
  "a read of the own slot that hangs until another has taken it restores no trust",
  staged(async (stage) => {
    const { device, open } = stage;
    const one = open("one").store;
    await one.takeSlot(undefined);
    // The next renewal's read sees the slot as it was, but is answered only after another process has taken
    // the slot.
    const hang = { isDue: true };
    device.latencyMs = (operation) => {
      if (operation !== "read" || !hang.isDue) return 1;
      hang.isDue = false;
      return 3_100;
    };
    await sleep(stage, oneSlot.slotLeaseMs / 3 + 20);
    expect(hang.isDue).toBe(false);
    const two = open("two").store;
    await two.takeSlot(undefined);
    for (let ms = 0; ms < 3_000; ms += 10) {
      expect([one.slotHeld, two.slotHeld].filter((slot) => slot !== undefined).length).toBeLessThan(2);
      await sleep(stage, 10);
    }
  }),
);

test(
  "a record is written before its announcement: a reader of the announcement sees the record, or is notified later",
  staged(async (stage) => {
    const { device, open } = stage;
    const { store } = open("one");
    const reader = open("reader").store;
    await store.takeSlot(undefined);
    await put(store, "lease/r", "first");
    device.latencyMs = (operation) => (operation === "write" ? 40 : 1);
    // Reads continuously while the write is in flight; each read continues from the previous mark.
    const writing = put(store, "lease/r", "second").then((answer) => (isWritten.kind = answer.kind));
    const isWritten = { kind: "" };
    let mark: string | undefined;
    let newest = "";
    const look = async () => {
      const asked = {
        op: "read",
        register: "lease/r",
        ...(mark !== undefined && { quietSince: mark }),
      } as const;
      const answer = await reader.perform(asked);
      if (answer.kind !== "cells") return;
      mark = answer.mark;
      newest = new TextDecoder().decode(answer.cells[0]);
    };
    while (isWritten.kind === "") await look();
    await writing;
    await look();
    expect([isWritten.kind, newest]).toEqual(["written", "second"]);
  }),
);

test(
  "a quiet renewal costs a sector to read, a sector to check for announcements, and a sector to write",
  staged(async ({ device, open }) => {
    const { store } = open("one");
    await store.takeSlot(undefined);
    await put(store, "lease/r", "record ".repeat(40));
    const seen = await store.perform({ op: "read", register: "lease/r" });
    const mark = seen.kind === "cells" ? seen.mark : undefined;
    device.resetCounts();
    for (let time = 0; time < 2; time += 1)
      expect(await store.perform({ op: "read", register: "lease/r", quietSince: mark! })).toMatchObject({
        kind: "quiet",
      });
    expect(await put(store, "lease/r", "renewed".repeat(40), true)).toMatchObject({ kind: "written" });
    expect(device.counts).toEqual({ reads: 2, bytesRead: 1_024, writes: 1, bytesWritten: 512 });
  }),
);

test(
  "a medium that was formatted again is never quiet",
  staged(async ({ device, open }) => {
    const { store } = open("one");
    await store.takeSlot(undefined);
    await put(store, "lease/r", "record");
    const seen = await store.perform({ op: "read", register: "lease/r" });
    const mark = seen.kind === "cells" ? seen.mark : undefined;
    expect(mark).toContain(oneSlot.id);
    device.forget();
    device.bytes.set(encodeSuperblock({ ...oneSlot, id: "another" }));
    const answer = await store.perform({ op: "read", register: "lease/r", quietSince: mark! });
    expect(answer).toEqual({ kind: "cells", id: "another", cells: [] });
  }),
);

test(
  "an operation that was given up while the device hung is not performed when it comes back",
  staged(async (stage) => {
    const { device, open } = stage;
    const { store } = open("one");
    await store.takeSlot(undefined);
    device.latencyMs = () => 150;
    const hanging = store.perform({ op: "read", register: "r" });
    const giveUp = new AbortController();
    const asked = [
      { op: "read", register: "r" },
      { op: "put", register: "r", next: bytes("late") },
      { op: "list", prefix: "", registersMax: 9 },
    ] as const;
    const answers = asked.map((request) => store.perform(request, giveUp));
    giveUp.abort();
    await hanging;
    device.resetCounts();
    for (const answer of await Promise.all(answers)) expect(answer.kind).toBe("failed");
    expect(device.counts).toMatchObject({ reads: 0, writes: 0 });
  }),
);

test("the registers of one resource share a region, and with it the hint", () => {
  const wide = { ...oneSlot, regions: 1_000 };
  expect(regionOf(wide, "question/a/b")).toBe(regionOf(wide, "lease/a/b"));
  expect(hintPosition(wide, regionOf(wide, "lease/a/b"))).toBe(
    hintPosition(wide, regionOf(wide, "question/a/b")),
  );
});

const texts = (answer: StoreAnswer) =>
  answer.kind === "cells" ? answer.cells.map((cell) => new TextDecoder().decode(cell)) : [answer.kind];
const read = async (store: BlockStore, register: string) =>
  texts(await store.perform({ op: "read", register }));
const fourSlots: Layout = { ...smallLayout, slots: 4, regions: 1 };

describe("a unit", () => {
  test(
    "that is damaged leaves the previous one, and is written again",
    staged(async ({ device, open }) => {
      const { store } = open("one");
      const slot = await store.takeSlot(undefined);
      await put(store, "r", "first");
      await put(store, "r", "second");
      const region = regionOf(oneSlot, "r");
      device.bytes.fill(
        0x58,
        unitPosition(oneSlot, region, slot, 0) + 70,
        unitPosition(oneSlot, region, slot, 0) + 75,
      );
      expect(await read(store, "r")).toEqual(["first"]);
      await put(store, "r", "third");
      expect(await read(store, "r")).toEqual(["third"]);
    }),
  );

  test(
    "a pair of damaged ones is an error with its place, and so is a foreign one; both stay untouched",
    staged(async ({ device, open }) => {
      const { store } = open("one");
      const slot = await store.takeSlot(undefined);
      await put(store, "r", "first");
      await put(store, "r", "second");
      const positions = ([0, 1] as const).map((half) =>
        unitPosition(oneSlot, regionOf(oneSlot, "r"), slot, half),
      );
      for (const position of positions) device.bytes.fill(0x58, position + 70, position + 75);
      const reader = open("reader").store;
      const asked = { op: "read", register: "r" } as const;
      expect(await reader.perform(asked)).toMatchObject({ kind: "failed", error: { code: "STORE_CORRUPT" } });
      expect(
        JSON.stringify(await reader.perform(asked).then((a) => a.kind === "failed" && a.error.message)),
      ).toContain(String(positions[0]));
      device.bytes.set(bytes("another-format"), positions[0]);
      expect(await reader.perform(asked)).toMatchObject({ kind: "failed", error: { code: "STORE_FOREIGN" } });
      expect(new TextDecoder().decode(device.bytes.subarray(positions[0]!, positions[0]! + 14))).toBe(
        "another-format",
      );
    }),
  );

  test(
    "that is full refuses further registers and keeps its content",
    staged(async ({ open }) => {
      const { store } = open("w");
      await store.takeSlot(undefined);
      const long = "x".repeat(1_500);
      expect(await put(store, "a", long)).toMatchObject({ kind: "written" });
      expect(await put(store, "b", long)).toMatchObject({ kind: "written" });
      expect(await put(store, "c", long)).toMatchObject({ kind: "failed", error: { code: "STORE_FULL" } });
      expect(await put(store, "a", "short")).toMatchObject({ kind: "written" });
      expect(await read(store, "b")).toEqual([long]);
    }, fourSlots),
  );
});

/** The shortest slot lease that an address may set. */
const smallestLease: Layout = { ...fourSlots, slotLeaseMs: 9 * smallLayout.delayMs };

describe("slots", () => {
  test(
    "of processes that are gone are reused, and their records stay",
    staged(
      async ({ open }) => {
        for (let round = 0; round < 4; round += 1) {
          const { store } = open(`writer ${round}`);
          await store.takeSlot(undefined);
          expect(await put(store, `r${round}`, `by ${round}`)).toMatchObject({ kind: "written" });
          for (let former = 0; former < round; former += 1)
            expect(await read(store, `r${former}`)).toEqual([`by ${former}`]);
          await store.close();
        }
      },
      { ...fourSlots, slots: 2 },
    ),
  );

  test(
    "are never shared: with all in use another process is refused",
    staged(
      async ({ open }) => {
        const stores = [open("one").store, open("two").store];
        for (const store of stores) await store.takeSlot(undefined);
        await expect(open("three").store.takeSlot(undefined)).rejects.toMatchObject({ code: "STORE_FULL" });
        for (const store of stores) expect(await put(store, "r", "x")).toMatchObject({ kind: "written" });
      },
      { ...fourSlots, slots: 2 },
    ),
  );

  test(
    "a process whose slot was overwritten writes no more until it has another one",
    staged(async (stage) => {
      const { device, open } = stage;
      const { store } = open("one");
      const slot = await store.takeSlot(undefined);
      device.bytes.fill(0, slotPosition(slot), slotPosition(slot) + 512);
      await sleep(stage, fourSlots.slotLeaseMs);
      expect(store.slotHeld).toBeDefined();
      expect(await put(store, "r", "x")).toMatchObject({ kind: "written" });
    }, fourSlots),
  );

  test(
    "a process that was stopped for longer than its slot lasts takes one again",
    staged(async (stage) => {
      const { process, store } = stage.open("one");
      await store.takeSlot(undefined);
      process.stall(2 * fourSlots.slotLeaseMs);
      await sleep(stage, 2 * fourSlots.slotLeaseMs + 1);
      expect(store.slotHeld).toBeUndefined();
      await sleep(stage, fourSlots.slotLeaseMs);
      expect(store.slotHeld).toBeDefined();
      expect(await put(store, "r", "x")).toMatchObject({ kind: "written" });
    }, fourSlots),
  );

  test(
    "a device that fails once does not cost a process its slot",
    staged(async (stage) => {
      const { device, open } = stage;
      const { store } = open("one");
      const slot = await store.takeSlot(undefined);
      const failing = { isDue: true };
      device.fault = () => failing.isDue && ((failing.isDue = false), new Error("EIO"));
      await sleep(stage, 3 * smallestLease.slotLeaseMs);
      expect(failing.isDue).toBe(false);
      expect(store.slotHeld).toBe(slot);
    }, smallestLease),
  );

  test(
    "are no longer trusted when the clocks disagree: the machine slept, and its system clock is wrong",
    staged(async (stage) => {
      const { store } = stage.open("one");
      await store.takeSlot(undefined);
      // The machine sleeps for longer than the slot's lease, but the system clock shows only part of that.
      stage.world.suspend(fourSlots.slotLeaseMs / 2);
      expect(store.slotHeld).toBeUndefined();
    }, fourSlots),
  );

  test(
    "with foreign data are not touched, and do not keep others from taking one",
    staged(async ({ device, open }) => {
      device.bytes.set(bytes("a file system"), slotPosition(0));
      const taken = await open("one").store.takeSlot(undefined);
      expect(taken).toBeGreaterThan(0);
      expect(new TextDecoder().decode(device.bytes.subarray(slotPosition(0), slotPosition(0) + 13))).toBe(
        "a file system",
      );
    }, fourSlots),
  );
});
