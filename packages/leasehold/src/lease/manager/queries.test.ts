import { expect, test } from "vitest";
import { ScriptedProvider } from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import type { Inspection } from "../provider.js";
import type { QueryOptions } from "../types.js";

/** Leases on a ground that does not support queries. */
function silentLeases() {
  const world = new VirtualWorld();
  const asked: string[] = [];
  const incomplete: ((why: string) => void)[] = [];
  const silent = (name: string) => (): Promise<never> => {
    asked.push(name);
    return new Promise(() => undefined);
  };
  const provider = Object.assign(new ScriptedProvider(world.clock), {
    query: silent("holder"),
    list: (_prefix: string, _timeoutMs: number, onIncomplete?: (why: string) => void) => {
      if (onIncomplete !== undefined) incomplete.push(onIncomplete);
      return silent("list")();
    },
    inspection: {
      explain: silent("explain"),
      requestRelease: silent("requestRelease"),
      breakLease: silent("break"),
    } as Partial<Inspection> as Inspection,
  });
  return { leases: new LeaseManager(provider, world), asked, incomplete };
}

test.each(["holder", "list", "explain", "requestRelease", "break"] as const)(
  "%s ends with its signal, and asks nothing for one that has aborted",
  async (question) => {
    const { leases, asked } = silentLeases();
    const controller = new AbortController();
    const { signal } = controller;
    const options: QueryOptions = { signal };
    const asking = leases[question]("a", options);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(asking).rejects.toBe(reason);
    await expect(leases[question]("a", options)).rejects.toBe(reason);
    expect(asked).toEqual([question]);
  },
);

test("onIncomplete is not called after its list was cancelled", async () => {
  const { leases, incomplete } = silentLeases();
  const controller = new AbortController();
  const heard: string[] = [];
  const onIncomplete = (why: string) => heard.push(why);
  const listing = leases.list("", { signal: controller.signal, onIncomplete });
  incomplete[0]!("early");
  controller.abort();
  incomplete[0]!("late");
  await expect(listing).rejects.toBe(controller.signal.reason);
  expect(heard).toEqual(["early"]);
});
