import type { World } from "../../packages/leasehold/src/common/ports.js";

/** This process's own clocks and timers. */
export const realWorld: World = {
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  timers: {
    after: (delayMs, run) => {
      const timeout = setTimeout(run, Math.max(0, Math.ceil(delayMs)) + 1);
      return { cancel: () => clearTimeout(timeout) };
    },
  },
  random: { next: Math.random },
};
