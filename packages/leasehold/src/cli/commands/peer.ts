import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "../../flease/tcp/types.js";
import type { EventLog } from "../../runtime/event-log.js";
import { eventLog, type LogEvents } from "../../runtime/log-events.js";
import { startMember } from "../../index.js";
import { memberChecks } from "../../metrics/health.js";
import { reloadSettings } from "../settings/reload.js";
import { exitCode } from "../common/exit-codes.js";
import { toJson } from "../output/json.js";
import { shortTime } from "../output/present.js";
import { serveMetrics } from "../common/metrics.js";
import { notifyParent } from "../common/parent-process.js";
import { printLine } from "../output/print.js";
import { requestedLogger, serverLogger } from "../common/log-options.js";
import { stopRequested } from "../common/stop-requested.js";
import { type ServiceManager, notifySystemd } from "../common/systemd.js";
import { type OutputFormat, type SharedOptions, settingsOf } from "../common/settings.js";
import { type PeerFlags, checkMember, memberOptionsOf } from "./peer-config.js";

/** Messages from a forked member to its parent. */
export type PeerNews =
  | { readonly type: "listening"; readonly id: string; readonly address: string }
  | { readonly type: "ready"; readonly id: string };

/** Time limit of a clean shutdown; then the process exits anyway. */
const CLOSE_MS_MAX = 3_000;

type PeerOptions = SharedOptions & PeerFlags;

/** Checks that `leasehold peer` could start with these options. */
export async function checkPeer(options: PeerOptions): Promise<void> {
  await checkMember(memberOptionsOf(options));
}

/** `leasehold peer`: runs one member until a signal arrives or the parent that forked it ends. */
export async function peer(options: PeerOptions): Promise<number> {
  const { output } = settingsOf(options);
  const { metricsAddress } = options;
  const asked = requestedLogger(options);
  const logger = serverLogger(options);
  const events = eventLog(logger);
  let started: Member | undefined;
  let systemd: ServiceManager | undefined;
  const stopped = stopRequested(() => {
    const takes = { resourcesMax: (max: unknown) => started?.setResourcesMax(Number(max)) };
    void reloadSettings({ logger, manager: systemd, takes });
  });
  const member = await startMember({ ...memberOptionsOf(options), logger });
  started = member;
  try {
    const metrics = await serveMetrics(
      metricsAddress,
      (all) => {
        all.observeMember(member);
        all.observe(member.leases);
      },
      asked,
    );
    announce(member, output, events);
    systemd = notifySystemd({ checks: () => memberChecks(member.status()) });
    await stopped;
    events.log("member-stopping", `${member.id} was told to stop`, { member: member.id });
    systemd.stopping();
    await metrics?.close();
  } finally {
    await Promise.race([member.close(), sleep(CLOSE_MS_MAX)]);
  }
  return exitCode("ok");
}

function announce(member: Member, output: OutputFormat, events: EventLog<LogEvents>): void {
  const { id, address } = member;
  events.log("member-listening", `${id} listens on ${address}`, { member: id, address });
  const { state, readyInMs } = member.status();
  report({ type: "listening", id, address }, output, `${id} listens on ${address}`);
  if (state === "recovering" && output === "table")
    printLine(`${id} is recovering, ready in ${shortTime(readyInMs)}`);
  member.ready().then(
    () => {
      events.log("member-ready", `${id} is ready`, { member: id });
      report({ type: "ready", id }, output, `${id} is ready`);
    },
    () => undefined, // The member was closed before it was ready.
  );
}

function report(news: PeerNews, output: OutputFormat, text: string): void {
  notifyParent(news);
  printLine(output === "table" ? text : toJson(news));
}
