import { LeaseholdError } from "leasehold/common";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { expect, test } from "vitest";
import { Silence } from "./silence.js";

function watched(answers: (node: string) => boolean) {
  const cluster = new MemoryCluster();
  const { world } = cluster;
  const asked: string[] = [];
  const silence = new Silence({
    world,
    peers: {
      ask: (node, _kind, _ask, { timeoutMs }) =>
        new Promise((resolve, reject) => {
          asked.push(node);
          if (answers(node)) resolve({ answer: { isHere: false }, body: new Uint8Array() } as never);
          else world.timers.after(timeoutMs, () => reject(new LeaseholdError("TIMEOUT")));
        }),
    },
  });
  return { cluster, silence, asked };
}

test("calls at a node that answers nothing are told so, and those at one that does wait on", async () => {
  const { cluster, silence, asked } = watched((node) => node === "busy");
  const told: string[] = [];
  for (const node of ["busy", "silent"]) silence.watch(node, () => told.push(node));
  await cluster.advance("740ms");
  expect([asked, told]).toEqual([["busy", "silent", "busy"], []]);
  await cluster.advance("20ms");
  expect(told).toEqual(["silent"]);
});

test("nobody is asked about short calls, nor told after the end", async () => {
  const { cluster, silence, asked } = watched(() => false);
  const told: string[] = [];
  for (let calls = 0; calls < 20; calls += 1) {
    const end = silence.watch("b", () => told.push("short"));
    await cluster.advance("100ms");
    end();
  }
  expect(asked).toEqual([]);
  const end = silence.watch("b", () => told.push("ended"));
  silence.watch("b", () => told.push("waiting"));
  await cluster.advance("600ms");
  end();
  await cluster.advance("600ms");
  expect(told).toEqual(["waiting"]);
});
