import type { CoreReport } from "./invariants.js";
import type { SimServer } from "./server.js";

/**
 * Only a voter can lead, according to the newest membership in its own log. A leader removed by a change may
 * lead until the change is committed (thesis 4.2.2).
 */
export function checkLeader(report: CoreReport, server: SimServer): void {
  const { commit, membership } = server.replica!.status();
  if (membership.voters.includes(server.id)) return;
  const isLeaving = server.disk.recovered.entries.some(
    (entry) =>
      entry.kind === "config" &&
      entry.index > commit &&
      entry.change.kind === "remove" &&
      entry.change.member === server.id,
  );
  if (!isLeaving) report("membership", `${server.id} leads, and has no vote`);
}

/** Changes are made one at a time: the previous one is committed first (thesis 4.1). */
export function checkChanges(report: CoreReport, server: SimServer): void {
  const { commit } = server.replica!.status();
  let changes = 0;
  for (const entry of server.disk.recovered.entries)
    if (entry.index > commit && entry.kind === "config") changes += 1;
  if (changes > 1) report("membership", `${server.id} has ${changes} changes under way`);
}
