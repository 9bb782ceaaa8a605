import { inAnswers } from "./answers.mjs";
import { inCommands } from "./cli.mjs";
import { inCore } from "./core.mjs";
import { inDelta } from "./delta.mjs";
import { onDisk } from "./disk.mjs";
import { atTheEdge } from "./edge.mjs";
import { inFiles } from "./files.mjs";
import { inFlease } from "./flease.mjs";
import { inNewCores } from "./new-core.mjs";
import { inRaft } from "./raft.mjs";
import { inStores } from "./stores.mjs";
import { inWaist } from "./lease.mjs";

/** All planted mistakes, whichever test catches them. */
export const mistakes = [
  ...inWaist,
  ...inFlease,
  ...inDelta,
  ...inStores,
  ...inFiles,
  ...inRaft,
  ...inCore,
  ...inNewCores,
  ...inAnswers,
  ...onDisk,
  ...atTheEdge,
  ...inCommands,
];
