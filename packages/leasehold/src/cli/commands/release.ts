import type { HolderAction, Leases } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import { printable } from "../output/cells.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";

type Verb = "release" | "break";

/** `leasehold release NAME`: exit code 69 if the holder could not be reached. */
export function requestRelease(resource: string, options: SharedOptions): Promise<number> {
  return act("release", resource, options, (leases, timeout) => leases.requestRelease(resource, { timeout }));
}

/** `leasehold handover NAME TO`: exit code 75 if TO is not waiting, 69 if the holder could not be reached. */
export function handOver(resource: string, to: string, options: SharedOptions): Promise<number> {
  return act("release", resource, options, (leases, timeout) => leases.handOver(resource, to, { timeout }));
}

/** `leasehold break NAME`: exit code 69 if too few members accepted the request to refuse renewals. */
export function breakLease(resource: string, options: SharedOptions): Promise<number> {
  return act("break", resource, options, (leases, timeout) => leases.break(resource, { timeout }));
}

async function act(
  verb: Verb,
  resource: string,
  options: SharedOptions,
  ask: (leases: Leases, timeoutMs: number) => Promise<HolderAction>,
): Promise<number> {
  const settings = settingsOf(options);
  const action = await withLeases(settings, (leases) => ask(leases, settings.timeoutMs));
  present(settings.output, presentAction(verb, resource, action));
  return action.holder === undefined || action.done ? exitCode("ok") : exitCode("unavailable");
}

export function presentAction(verb: Verb, resource: string, action: HolderAction): Presentation {
  const { holder, token, done, remainingMs } = action;
  const view = {
    resource,
    done,
    ...(holder !== undefined && { holder }),
    ...(token !== undefined && { token: String(token) }),
    ...(remainingMs !== undefined && { remainingMs: Math.round(remainingMs) }),
  };
  return {
    document: view,
    table: () => [printable(sentence(verb, resource, action))],
  };
}

function sentence(verb: Verb, resource: string, { holder, done, remainingMs }: HolderAction): string {
  if (holder === undefined) return `nobody holds ${resource}`;
  const left = shortTime(remainingMs ?? 0);
  if (verb === "release") {
    return done
      ? `${holder} was asked to release ${resource}`
      : `${holder} holds ${resource} and could not be notified; its lease runs out in ${left} unless it is renewed`;
  }
  return done
    ? `the lease of ${holder} on ${resource} is broken: it runs out in ${left} at the latest`
    : `too few members could be reached to refuse ${holder}'s renewals of ${resource}; try again`;
}
