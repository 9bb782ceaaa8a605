import type { Group } from "./call.js";

/** Who is there and how they are. */
export const cluster: readonly Group[] = [
  {
    title: "one server tells of itself",
    calls: [
      "endpoint health",
      "endpoint health -w json",
      "endpoint health --cluster",
      { words: "endpoint status", onlyExit: "the version of the API, and sizes" },
      { words: "endpoint status --cluster -w json", onlyExit: "the version of the API, and sizes" },
      "member list",
      "member list -w json",
      "member list -w fields",
      "member list -w table",
      "alarm list",
      "alarm disarm",
      "version",
    ],
  },
];
