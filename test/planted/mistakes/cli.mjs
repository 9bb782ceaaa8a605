/** The known mistakes of the commands. */

const runUnderLease = "packages/leasehold/src/cli/run/run-under-lease.ts";
const connection = "packages/leasehold/src/cli/common/connection.ts";

const connectionTest = { file: "packages/leasehold/src/cli/common/connection.realtime.test.ts" };

export const inCommands = /** @type {const} */ ([
  {
    name: "recoveringIsConflict",
    why: "`run` says that another holds what nobody can have.",
    edits: [
      {
        file: runUnderLease,
        at: "isConflict: explanation.quorum }",
        find: "explanation.quorum",
        replace: "true",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/cli/run/run-under-lease.processes.test.ts" },
  },
  {
    name: "waitIsForTheLeaseAlone",
    why: "`--wait` is for the lease alone, and not for members.",
    edits: [
      {
        file: connection,
        find: "options.wait === undefined || waitMs === 0 ? settings.timeoutMs : waitMs",
        replace: "settings.timeoutMs",
      },
    ],
    caughtBy: connectionTest,
  },
  {
    name: "openingHearsNoSignal",
    why: "A signal does not end the opening.",
    edits: [
      {
        file: connection,
        at: "openOptions(settings)), signal)",
        find: "signal",
        replace: "undefined",
      },
    ],
    caughtBy: connectionTest,
  },
]);
