import { formatDuration } from "../../lease/duration.js";
import { majorityOf } from "../../common/majority.js";
import type { Explanation, MemberView } from "../../lease/types.js";

/** Sentences that explain why a resource is available or not. */
export function reasonsOf(explanation: Omit<Explanation, "reasons">): string[] {
  const { quorum, members, waiting } = explanation;
  const reasons = [holdingOf(explanation)];
  if (!quorum) {
    const majority = majorityOf(members.length);
    const ready = members.filter(({ state }) => state === "ready").length;
    reasons.push(
      `no quorum: ${ready} of the ${members.length} members that coordinate it can answer, and ${majority} are needed`,
    );
  }
  for (const member of members) if (member.state !== "ready") reasons.push(absenceOf(member));
  if (waiting > 0)
    reasons.push(waiting === 1 ? "one participant waits for it" : `${waiting} participants wait for it`);
  return reasons;
}

function holdingOf({
  state,
  holder,
  label,
  remainingMs,
  broken,
  confirmed,
}: Omit<Explanation, "reasons">): string {
  if (state === "free") return "it is free";
  if (state === "unknown") return "nobody can say who holds it";
  const who = label === undefined ? `${holder}` : `${holder} (${label})`;
  const left = formatDuration(Math.round(remainingMs ?? 0));
  if (broken) return `held by ${who}, whose lease was broken: it runs out in ${left}`;
  if (confirmed !== true)
    return `a minority knows of a lease of ${who}: an attempt under way, or what is left of one; at most ${left} are left`;
  return `held by ${who}, which runs out in ${left} unless it is renewed`;
}

function absenceOf(member: MemberView): string {
  if (member.state === "recovering")
    return `${member.id} is recovering and takes part in ${formatDuration(Math.round(member.readyInMs ?? 0))}`;
  if (member.state === "clock-fault") return `${member.id} does not trust its clock`;
  return `${member.id} cannot be asked: ${member.reason ?? "it does not answer"}`;
}
