import { inCore } from "./core.mjs";
import { inDelta } from "./delta.mjs";
import { inFlease } from "./flease.mjs";
import { inRaft } from "./raft.mjs";
import { inWaist } from "./lease.mjs";

/** All planted mistakes, whichever test catches them. */
export const mistakes = [...inWaist, ...inFlease, ...inDelta, ...inRaft, ...inCore];
