import { Tokens } from "../../kit/checkers/tokens.js";
import type { FleaseReport, Observer } from "../stage/observer.js";

/** I2: each tenure of a resource has a greater token than every earlier one. I3: no two have the same. */
export function fleaseTokens(report: FleaseReport): Tokens<number> {
  return new Tokens({ twice: (text) => report("I3", text), falls: (text) => report("I2", text) });
}

/** As the nodes' programs are told of their tenures. */
export function nodeTokens(report: FleaseReport): Observer {
  const tokens = fleaseTokens(report);
  return {
    tenureBegan: ({ node, resource, token }) => tokens.given({ resource, token, who: node.name }),
  };
}

/** As programs on the waist see it. */
export function programTokens(report: FleaseReport): Observer {
  const tokens = fleaseTokens(report);
  return {
    claimBegan: ({ node, resource, token }) =>
      tokens.given({ resource, token, who: `a program of ${node.name}` }),
  };
}
