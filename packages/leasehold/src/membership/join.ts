import { unlessAborted, unwatchAbort, watchAbort } from "../common/abort-watch.js";
import type { Timer, World } from "../common/ports.js";
import { formatDuration, parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { checkOptionNames, type OptionNames } from "../lease/option-names.js";
import { MemberGroup } from "./member-group.js";
import type { Registry } from "./registry.js";
import type { Group, GroupOptions } from "./types.js";

const waitDefault = "1m";
const jitterDefault = "1s";

export const groupOptionNames: OptionNames<GroupOptions> = {
  name: true,
  data: true,
  ttl: true,
  wait: true,
  grace: true,
  jitter: true,
  signal: true,
};

/** @throws LeaseholdError `INVALID_CONFIG`, `INVALID_NAME`, `INVALID_DURATION` */
export function groupSettings(
  group: string,
  options: GroupOptions,
  names: OptionNames<GroupOptions> = groupOptionNames,
) {
  checkOptionNames("joinGroup", options, names);
  const { name, grace = 0, wait = waitDefault, jitter = jitterDefault } = options;
  for (const each of [group, name])
    if (each !== undefined && (typeof each !== "string" || each === ""))
      throw new LeaseholdError("INVALID_NAME", "a group and its members need names");
  if (name?.includes("/") === true)
    throw new LeaseholdError("INVALID_NAME", `a member's name can't have a slash: ${JSON.stringify(name)}`);
  return {
    graceMs: parseDuration(grace, "grace"),
    jitterMs: parseDuration(jitter, "jitter"),
    waitMs: parseDuration(wait, "wait", { infinity: true }),
  };
}

export type GroupSettings = ReturnType<typeof groupSettings>;

/** Starts to follow the group, and registers this process there if it has a name. */
export async function join(
  group: string,
  registry: Registry,
  world: World,
  { graceMs, waitMs }: GroupSettings,
  options: GroupOptions,
): Promise<Group> {
  const { name, data, signal } = options;
  const joined = new MemberGroup(group, registry, world, graceMs);
  const leave = () => void joined.leave();
  let late: Timer | undefined;
  try {
    signal?.throwIfAborted();
    if (name !== undefined) {
      const giveUp = new Promise<never>((_resolve, reject) => {
        const what = `waited ${formatDuration(waitMs)} to be ${JSON.stringify(name)} in ${JSON.stringify(group)}`;
        if (waitMs < Infinity)
          late = world.timers.after(waitMs, () => reject(new LeaseholdError("TIMEOUT", what)));
      });
      await unlessAborted(Promise.race([joined.enter({ name, data }), giveUp]), signal);
    }
  } catch (error) {
    await joined.leave();
    throw error;
  } finally {
    late?.cancel();
  }
  watchAbort(signal, leave);
  joined.onEnd = () => unwatchAbort(signal, leave);
  return joined;
}
