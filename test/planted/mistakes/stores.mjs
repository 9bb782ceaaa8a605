/** The known mistakes that can be made around stores. */

const blockStore = "packages/leasehold/src/stores/block/block-store.ts";
const layout = "packages/leasehold/src/stores/block/layout.ts";
const lazyStore = "packages/leasehold/src/stores/lazy-store.ts";
const slotLease = "packages/leasehold/src/stores/block/slot-lease.ts";

const files = "packages/leasehold/src/stores/directory/files.ts";
const limiter = "packages/leasehold/src/stores/common/thread-limiter.ts";
const registerDirectory = "packages/leasehold/src/stores/directory/register-directory.ts";

const durabilityTest = { file: "packages/leasehold/src/stores/directory/durability.test.ts" };
const slotsTest = { file: "packages/leasehold/src/stores/block/slots.property.test.ts", seeds: 400 };
const deviceTest = { file: "packages/leasehold/src/stores/block/device.test.ts" };

export const inStores = /** @type {const} */ ([
  {
    name: "farmWaitsForStore",
    why: "A farm waits for a store that does not close.",
    edits: [
      {
        file: lazyStore,
        find: "Promise.race([this.#opened.close(), given])",
        replace: "this.#opened.close()",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/stores/lazy-store.test.ts" },
  },
  {
    name: "unitsOutliveTheSlot",
    why: "A slot that is taken again goes on with what it knew of its units.",
    edits: [
      {
        file: slotLease,
        find: "new SlotTenure(slot, written)",
        replace:
          "Object.assign(new SlotTenure(slot, written), { units: (this.old ??= [])[slot] ??= new Map() })",
      },
    ],
    caughtBy: slotsTest,
  },
  {
    name: "lookAtSlotMayTakeLong",
    why: "A look at the own slot may take as long as it likes, and the slot's time be over.",
    edits: [
      {
        file: slotLease,
        find: "elapsedSince(begun, this.#world) < this.#layout.delayMs",
        replace: "true",
      },
      {
        file: slotLease,
        at: "tenure.content)) || this.tenure !== tenure",
        find: "this.tenure !== tenure",
        replace: "false",
      },
      {
        file: slotLease,
        at: "written.content)) || this.tenure !== tenure",
        find: "this.tenure !== tenure",
        replace: "false",
      },
    ],
    caughtBy: deviceTest,
  },
  {
    name: "oneUnitOfSlot",
    why: "A slot has one unit in a region.",
    edits: [{ file: blockStore, find: "unit.sequence % 2 === 0 ? 0 : 1", replace: "0" }],
    caughtBy: slotsTest,
  },
  {
    name: "tornUnitIsUnreadable",
    why: "A write that was cut off makes its region unreadable.",
    edits: [
      {
        file: layout,
        at: 'error.code === "STORE_CORRUPT") return "torn";',
        find: 'error.code === "STORE_CORRUPT"',
        replace: "false",
      },
    ],
    caughtBy: slotsTest,
  },
  {
    name: "anyFreshSlot",
    why: "Any slot that was never used may be taken.",
    edits: [
      {
        file: slotLease,
        at: "content === undefined && slot < first + freshSlots ?",
        find: "slot < first + freshSlots",
        replace: "true",
      },
    ],
    caughtBy: slotsTest,
  },
  {
    name: "nothingIsAnnounced",
    why: "A write leaves no hint for readers.",
    edits: [{ file: blockStore, at: "if (!quiet) {", find: "!quiet", replace: "false" }],
    caughtBy: slotsTest,
  },
  {
    name: "announcedBeforeWritten",
    why: "A write leaves its hint before it is on the device.",
    edits: [
      {
        file: blockStore,
        find: "await this.#medium.writeEnvelope(unitPosition(layout, region, tenure.slot, half), envelope);",
        replace:
          "const later = envelope.slice(); if (!quiet) { const hint = encodeHint(layout.id, globalThis.crypto.randomUUID()); await this.#medium.writeEnvelope(hintPosition(layout, region), hint); } await this.#medium.writeEnvelope(unitPosition(layout, region, tenure.slot, half), later);",
      },
      { file: blockStore, at: "if (!quiet) {", find: "!quiet", replace: "false" },
    ],
    caughtBy: deviceTest,
  },
  {
    name: "hintReadAfterUnits",
    why: "The hint is read after the units.",
    edits: [
      {
        file: blockStore,
        at: "const cells = units.flatMap((unit) => cellOf(unit, register));",
        find: "units.flatMap((unit) => cellOf(unit, register))",
        replace:
          "(mark = decodeHint(await this.#medium.readSector(hintPosition(this.#layout, region)), id)), units.flatMap((unit) => cellOf(unit, register))",
      },
    ],
    caughtBy: slotsTest,
  },
  {
    name: "contentOfRegisterUnsynced",
    why: "A register's content is not on the disk when it is made to count.",
    edits: [
      {
        file: files,
        find: "await allEnded([this.#limiter.run(() => fsync(file)), ...names]);",
        replace: "await allEnded(names);",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "newTokenUnsynced",
    why: "A register is made to appear before the directory that says its content is on the disk.",
    edits: [
      {
        file: registerDirectory,
        find: "await this.#files.syncDirectories([token, path]);",
        replace: "await this.#files.syncDirectories([path]);",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "replacementUnsynced",
    why: "A directory answers that it has written before that is on the disk.",
    edits: [
      {
        file: registerDirectory,
        find: "await this.#sync(isFirst);",
        replace: ";",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "firstNameUnsynced",
    why: "A register's first content is replaced before the register's own name is on the disk.",
    edits: [
      {
        file: registerDirectory,
        find: "cell.version.number === 1",
        replace: "false",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "failedSyncCounts",
    why: "What stands there counts as written, though its sync has failed.",
    edits: [
      {
        file: "packages/leasehold/src/stores/directory/directory-medium.ts",
        find: "register.rewrite(cell)",
        replace: "Promise.resolve(cell)",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "rewritesSuspendSyncs",
    why: "A Redis counts as durable that does not synchronise while it rewrites its file.",
    edits: [
      {
        file: "packages/leasehold/src/stores/redis/server-facts.ts",
        find: 'settings?.appendfsync === "always" && settings["no-appendfsync-on-rewrite"] === "no"',
        replace: 'settings?.appendfsync === "always"',
      },
    ],
    caughtBy: { file: "packages/leasehold/src/stores/redis/server-facts.test.ts" },
  },
  {
    name: "leaseShorterThanRenewal",
    why: "Settings are accepted in which each lease is over before its first renewal.",
    edits: [
      {
        file: "packages/leasehold/src/delta/provider/open.ts",
        find: "{ ...options, leaseDelaysMin }",
        replace: "{ ...options, leaseDelaysMin: 3 }",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/delta/farm/farm.test.ts" },
  },
  {
    name: "looksReadAllCells",
    why: "A look at the farm reads all cells, though nothing was announced since the last one.",
    edits: [
      { file: "packages/leasehold/src/delta/farm/farm.ts", find: "member.seen?.mark", replace: "undefined" },
    ],
    caughtBy: { file: "packages/leasehold/src/delta/farm/farm.test.ts" },
  },
  {
    name: "syncBeganBefore",
    why: "Who has changed a name relies on a sync that had begun before.",
    edits: [
      {
        file: files,
        find: "if (underWay === undefined) return this.#beginSync(path);",
        replace: "return underWay ?? this.#beginSync(path);",
      },
    ],
    caughtBy: durabilityTest,
  },
  {
    name: "storeTakesAllThreads",
    why: "The stores of a process take all of Node's threads for files.",
    edits: [{ file: limiter, find: "Math.floor((threads - 1) / limiters.size)", replace: "threads" }],
    caughtBy: { file: "packages/leasehold/src/stores/common/thread-limiter.test.ts" },
  },
]);
