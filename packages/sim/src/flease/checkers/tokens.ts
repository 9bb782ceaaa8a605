import { Tokens } from "../../kit/checkers/tokens.js";
import type { FleaseReport, Observer } from "../stage/observer.js";

/** I2: each tenure of a resource has a greater token than every earlier one. I3: no two have the same. */
export function fleaseTokens(report: FleaseReport): Tokens<number> {
  return new Tokens({ twice: (text) => report("I3", text), falls: (text) => report("I2", text) });
}

/** As reported to the nodes' programs. */
export function nodeTokens(report: FleaseReport): Observer {
  const tokens = fleaseTokens(report);
  return {
    tenureBegan: ({ node, resource, token }) => tokens.given({ resource, token, who: node.name }),
  };
}

/**
 * As programs on the waist see it. Readers have no order among themselves: the first of two may learn of its
 * lease last.
 */
export function programTokens(report: FleaseReport): Observer {
  const tokens = fleaseTokens(report);
  const readers = new Map<string, number>();
  const others = new Map<string, number>();
  return {
    claimBegan: ({ node, resource, token, shared }) => {
      const who = `a program of ${node.name}`;
      if (!shared) tokens.given({ resource, token, who });
      const before = (shared ? others : readers).get(resource) ?? 0;
      if (token <= before) report("I2", `${who} is given ${resource} by ${token}, after ${before}`);
      const own = shared ? readers : others;
      own.set(resource, Math.max(token, own.get(resource) ?? 0));
    },
  };
}
