import { Exclusion } from "../../kit/checkers/exclusion.js";
import type { FleaseReport, Hold, Observer } from "../stage/observer.js";

/** I1: no two nodes hold one resource at one instant, each by its own clocks. */
export function nodeExclusion(report: FleaseReport): Observer {
  const exclusion = new Exclusion<Hold>(
    { isHeld: ({ valid }) => valid, nameOf: ({ node, slot }) => `${node.name} (token ${slot.token})` },
    (text) => report("I1", text),
  );
  return { looked: (resource, holds) => exclusion.look(resource, holds) };
}
