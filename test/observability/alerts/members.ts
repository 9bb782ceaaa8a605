import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { FakeClock } from "../../e2e/fake-clock.js";
import { dist } from "../../support/built.js";
import { repeatedly, type Troubles } from "./troubles.js";

/**
 * A program that holds a lease, and acquires it again after a loss. Two signals block its event loop, for a
 * shorter or a longer time.
 */
const holder = (urls: readonly string[], metrics: string) => `
  import { open } from ${JSON.stringify(join(dist, "index.js"))};
  import { createMetrics } from ${JSON.stringify(join(dist, "entry/metrics.js"))};
  const cell = new Int32Array(new SharedArrayBuffer(4));
  process.on("SIGUSR2", () => Atomics.wait(cell, 0, 0, 5_500));
  process.on("SIGHUP", () => Atomics.wait(cell, 0, 0, 3_000));
  const metrics = createMetrics();
  metrics.observeProcess();
  await metrics.serve("${metrics}");
  const leases = await open(...${JSON.stringify(urls)}, { timeout: "100s" });
  metrics.observe(leases);
  for (;;) {
    const held = leases.using("jobs/a", { ttl: "4s" }, ({ signal }) =>
      new Promise((resolve) => signal.addEventListener("abort", resolve)));
    await held.catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
`;

const ids = ["a", "b", "c"] as const;

export const memberPorts = 7;

/** Those of these addresses that Prometheus scrapes. */
export const memberTargets = (at: readonly string[]): string[] => at.slice(3, 7);

/** Three members, one of them with a fake clock, and a program with a lease of four seconds. */
export async function troubleMembers(troubles: Troubles, at: readonly string[]): Promise<void> {
  const { scraped } = troubles;
  const clocks = { c: new FakeClock(scraped.folder, "c"), holder: new FakeClock(scraped.folder, "holder") };
  const startMember = (id: string, index: number): ChildProcess => {
    const members = ids.flatMap((each, place) => ["--member", `${each}=${at[place]}`]);
    const bounds = ["--ttl-max", "6s", "--max-clock-skew", "1s"];
    const words = ["peer", "--id", id, ...members, "--metrics-address", at[3 + index]!, ...bounds];
    return scraped.startWith(
      id === "c" ? clocks.c.env : {},
      process.execPath,
      join(dist, "cli/main.js"),
      ...words,
    );
  };
  const members = ids.map(startMember);
  const urls = at.slice(0, 3).map((address) => `flease://${address}`);
  const held = scraped.startWith(
    clocks.holder.env,
    process.execPath,
    "--input-type=module",
    "-e",
    holder(urls, at[6]!),
  );
  const isHeld = async (): Promise<void> =>
    expect(await scraped.settled('sum(leasehold_leases_held{job="members"})', 1)).toBe(1);
  const areReady = async (): Promise<void> =>
    expect(await scraped.settled('sum(leasehold_member_ready{job="members",state="ready"})', 3)).toBe(3);
  await areReady();
  await isHeld();

  let end = (): Promise<void> => Promise.resolve();
  await troubles.happen({
    alerts: { LeaseRenewalSlackLow: 'job=~"members|"' },
    made: "the program's event loop is blocked for 3 s of each 3.5",
    ended: "no more blocked",
    make: () => {
      end = repeatedly(async () => {
        held.kill("SIGHUP");
        await sleep(3_500);
      });
    },
    mend: () => end(),
  });
  await troubles.happen({
    alerts: { LeaseLost: 'reason="expired"' },
    made: "the program's event loop is blocked for 5.5 s",
    ended: "the lease is taken again",
    make: async () => {
      await isHeld();
      held.kill("SIGUSR2");
    },
    look: async () => {
      // The first query of the runbook.
      const late = 'sum(increase(leasehold_event_loop_delay_seconds_sum{job="members"}[20s])) > bool 2';
      expect(await scraped.settled(late, 1)).toBe(1);
    },
    mend: isHeld,
  });
  await troubles.happen({
    alerts: { LeaseLost: 'reason="clock-fault"' },
    made: "the program's clock is set an hour ahead",
    ended: "the clock is corrected",
    make: () => clocks.holder.set("+1h"),
    mend: async () => {
      clocks.holder.set("+0");
      await isHeld();
    },
  });
  await troubles.happen({
    alerts: { MemberClockSkewHigh: "" },
    made: "a member's clock is set 0.75 of the bound ahead",
    ended: "the clock is corrected",
    make: () => clocks.c.set("+0.75s"),
    mend: () => clocks.c.set("+0"),
  });
  await areReady();
  await troubles.happen({
    alerts: { MemberNotReady: "" },
    made: "a member's clock is set an hour ahead",
    ended: "the clock is corrected, and the recovery wait over",
    make: () => clocks.c.set("+1h"),
    look: async () => {
      const readiness = await fetch(`http://${at[5]}/readyz?verbose`);
      expect(readiness.status).toBe(503);
      expect(await readiness.text()).toContain("clock");
    },
    mend: () => clocks.c.set("+0"),
  });
  await areReady();
  await troubles.happen({
    alerts: { MemberUnreachable: 'peer="c"' },
    made: "a member is killed",
    ended: "it is started",
    make: () => members[2]!.kill("SIGKILL"),
    mend: () => {
      members[2] = startMember("c", 2);
    },
  });
}
