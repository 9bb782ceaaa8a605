import type { Group } from "./call.js";

export const locks: readonly Group[] = [
  {
    title: "locks and elections of etcdctl",
    calls: [
      "lock l echo held",
      "lock l --ttl=5 -- echo held again",
      { words: ["lock", "l", "sh", "-c", "exit 3"] },
      { words: ["lock", "l", "sh", "-c", "echo ${ETCD_LOCK_KEY%/*} $ETCD_LOCK_REV"] },
      "lock",
      { words: "elect e someone", lines: 2 },
      "elect e",
      "elect",
      { words: ["get", "", "--prefix"] },
    ],
  },
];
