// The charts of the Flease talk: each part lists the Debian packages that it needs, and returns rows.
import { measureBusyDisks } from "./busy-disks.mjs";
import { measureOpenFiles, measureZooKeeperSessions } from "./open-files.mjs";
import { measureMembers, measureZooKeeperNodes } from "./over-nodes.mjs";

export const slides = {
  nodes: { packages: [], measure: measureMembers },
  "nodes-zookeeper": { packages: ["zookeeper"], measure: measureZooKeeperNodes },
  "open-files": { packages: [], measure: measureOpenFiles },
  "open-files-zookeeper": { packages: ["zookeeper"], measure: measureZooKeeperSessions },
  "busy-disks": { packages: ["zookeeper", "etcd-server"], measure: measureBusyDisks },
};
