// Mistakes that were made once, or would be easy to make: each text stands exactly once in its file.
const powerLoss = "src/core/server/disk/power-loss.test.ts";
const powerCuts = "sim/core/power-cuts.test.ts";
const slots = "src/stores/block/slots.property.test.ts";
const device = "src/stores/block/device.test.ts";
const drivers = "sim/delta/drivers.test.ts";
const mixedSettings = "test/mixed-settings.test.ts";
const runner = "sim/flease/runner.test.ts";

export const mutants = [
  {
    name: "runner: P38: a reading from before the message arrived is used for it",
    file: "src/flease/runner.ts",
    find: "    this.#now = this.now();\n    return this.#now;",
    replace: "    return this.#now;",
    seeds: "100",
    caughtBy: runner,
  },
  {
    name: "runner: a restart keeps the name of the former incarnation",
    file: "src/flease/runner.ts",
    find: "this.peer.restart(this.#options.owner(), monotonicMs, wallMs);",
    replace: "this.peer.restart(this.peer.proposer.owner, monotonicMs, wallMs);",
    seeds: "100",
    caughtBy: runner,
  },
  {
    name: "runner: a restart claims what the former incarnation held",
    file: "src/flease/peer.ts",
    find: "    this.proposer.restart(owner);\n",
    replace: "",
    seeds: "100",
    caughtBy: runner,
  },
  {
    name: "disk: a journal is not synced before what it has is counted",
    file: "src/core/journal/segment.ts",
    find: "  if (size > bytes) await file.truncate(bytes);\n  await file.datasync();",
    replace: "  if (size > bytes) await file.truncate(bytes);",
    caughtBy: powerLoss,
  },
  {
    name: "disk: the journal's folder is not synced when it is opened",
    file: "src/core/journal/segment.ts",
    find: "  await file.datasync();\n  await syncFolder(folder);\n  return file;\n}\n\nexport interface",
    replace: "  await file.datasync();\n  return file;\n}\n\nexport interface",
    caughtBy: powerLoss,
  },
  {
    name: "disk: the data directory's own name is not synced",
    file: "src/core/server/disk/data-directory.ts",
    find: "    await syncFolder(dirname(path));",
    replace: "",
    caughtBy: powerLoss,
  },
  {
    name: "disk: a member.json that was renamed by a process that was killed is not synced",
    file: "src/core/server/disk/data-directory.ts",
    find: "    await syncFolder(path);",
    replace: "",
    caughtBy: powerLoss,
  },
  {
    name: "disk: what waits for an installation goes on when that has failed",
    file: "src/core/server/disk/disk.ts",
    find: "this.#installing.then(write);",
    replace: "this.#installing.then(write, write);",
    caughtBy: powerLoss,
  },
  {
    name: "disk: old snapshots go before the record that makes them useless",
    file: "src/core/server/disk/disk.ts",
    find: "      await this.#snapshots.save(snapshot, inTurns(received.pieces));",
    replace:
      "      await this.#snapshots.save(snapshot, inTurns(received.pieces));\n" +
      "      await this.#snapshots.removeBefore(snapshot.index);\n" +
      "      await this.#snapshots.removeBefore(this.#base + 1);",
    caughtBy: powerLoss,
  },
  {
    name: "disk: another server's disk is remembered before it is on the own one",
    file: "src/core/server/disk/disk-index.ts",
    find: "    await writeMemberRecord(this.#folder, { ...this.#record, disks });\n    this.#disks = disks;",
    replace:
      "    this.#disks = disks;\n    await writeMemberRecord(this.#folder, { ...this.#record, disks });",
    caughtBy: powerLoss,
  },
  {
    name: "disk: one write of member.json that failed locks all out",
    file: "src/core/server/disk/disk-index.ts",
    find: "    this.#last = learning.catch(() => undefined);",
    replace: "    this.#last = learning;",
    caughtBy: powerLoss,
  },
  {
    name: "core host: a message is sent before what it promises is on disk",
    file: "src/core/host/host.ts",
    find: "    const waiting = [messages];",
    replace: "    const waiting: Waiting = [];\n    this.#send(messages);",
    caughtBy: powerCuts,
  },
  {
    name: "core host: a message without a write overtakes the writes before it",
    file: "src/core/host/host.ts",
    find: "else if (this.#waiting === undefined) this.#send(messages);",
    replace: "else if (true) this.#send(messages);",
    caughtBy: powerCuts,
  },
  {
    name: "core host: a write is acknowledged before it is synced",
    file: "src/core/host/host.ts",
    find: "    this.#options.disk.persist(persist, received, (error) => {",
    replace:
      '    this.step({ kind: "persisted", sequence: persist.sequence });\n' +
      "    this.#options.disk.persist(persist, received, (error) => {",
    caughtBy: powerCuts,
  },
  {
    name: "core host: the outbox behind a write drops its newest message",
    file: "src/core/host/host.ts",
    find: "    const waiting = [messages];",
    replace: "    const waiting = [messages.slice(0, -1)];",
    caughtBy: powerCuts,
  },
  {
    name: "block: a slot that is taken again goes on with what it knew of its units",
    file: "src/stores/block/slot-lease.ts",
    find: "new SlotTenure(slot, written) : undefined;",
    replace:
      "Object.assign(new SlotTenure(slot, written), { units: (this.old ??= [])[slot] ??= new Map() }) : undefined;",
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "block: a look at the own slot may take as long as it likes, and the slot's time be over",
    file: "src/stores/block/slot-lease.ts",
    find: "const inTime = elapsedSince(begun, this.#world) < this.#layout.delayMs;",
    replace: "const inTime = true;",
    also: [
      [
        "if (!(await this.#stillStands(tenure.slot, tenure.content)) || this.tenure !== tenure)",
        "if (!(await this.#stillStands(tenure.slot, tenure.content)))",
      ],
      [
        "if (!(await this.#stillStands(tenure.slot, written.content)) || this.tenure !== tenure)",
        "if (!(await this.#stillStands(tenure.slot, written.content)))",
      ],
    ],
    caughtBy: device,
  },
  {
    name: "block: a slot has one unit in a region",
    file: "src/stores/block/block-store.ts",
    find: "const half = unit.sequence % 2 === 0 ? 0 : 1;",
    replace: "const half = 0;",
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "block: a write that was cut off makes its region unreadable",
    file: "src/stores/block/layout.ts",
    find: 'error.code === "STORE_CORRUPT") return "torn";',
    replace: 'error.code === "NEVER") return "torn";',
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "block: any slot that was never used may be taken",
    file: "src/stores/block/slot-lease.ts",
    find: "content === undefined && slot < first + freshSlots ? [slot] : [],",
    replace: "content === undefined ? [slot] : [],",
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "block: nothing is announced",
    file: "src/stores/block/block-store.ts",
    find: "    if (!quiet) {\n",
    replace: "    if (false) {\n",
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "block: it is announced before it is written",
    file: "src/stores/block/block-store.ts",
    find: "    await this.#medium.writeEnvelope(unitPosition(layout, region, tenure.slot, half), envelope);\n    if (!quiet) {",
    replace:
      "    const later = envelope.slice();\n    if (!quiet) {\n" +
      "      const hint = encodeHint(layout.id, globalThis.crypto.randomUUID());\n" +
      "      await this.#medium.writeEnvelope(hintPosition(layout, region), hint);\n    }\n" +
      "    await this.#medium.writeEnvelope(unitPosition(layout, region, tenure.slot, half), later);\n    if (false) {",
    caughtBy: device,
  },
  {
    name: "block: the hint is read after the units",
    file: "src/stores/block/block-store.ts",
    find: "    const units = await this.#readRegion(region);\n    const cells",
    replace:
      "    const units = await this.#readRegion(region);\n" +
      "    mark = decodeHint(await this.#medium.readSector(hintPosition(this.#layout, region)), id);\n    const cells",
    seeds: "400",
    caughtBy: slots,
  },
  {
    name: "delta: a look at the farm is believed for too long",
    file: "src/delta/farm/farm.ts",
    find: '.state === "ready" && this.#ageMs(now) < this.#settings.leaseMsMax;',
    replace: '.state === "ready" && this.#ageMs(now) < Infinity;',
    seeds: "60",
    caughtBy: drivers,
  },
  {
    name: "delta: a late answer counts for the wait that has come since",
    file: "src/delta/driver.ts",
    find: "      if (this.#ask.late === undefined) return;\n",
    replace: "      this.#onLate(store, answer);\n      if (this.#ask.late === undefined) return;\n",
    also: [
      [
        "      () => this.#wait?.endIfOver(),\n",
        "      (store, answer) => (store === undefined ? this.#wait?.endIfOver() : this.#wait?.count(store, answer)),\n",
      ],
      [
        "  endIfOver(): void {\n",
        "  count(store, answer) {\n    this.#answers[store] ??= answer;\n    this.endIfOver();\n  }\n\n  endIfOver(): void {\n",
      ],
    ],
    seeds: "60",
    caughtBy: drivers,
  },
  {
    name: "delta: the clocks are read before the stores answer",
    file: "src/delta/driver.ts",
    find: "    this.#wait = wait;\n",
    replace: "    this.#wait = wait;\n    this.early = this.#driver.now();\n",
    also: [["next({ now: this.#driver.now(),", "next({ now: this.early ?? this.#driver.now(),"]],
    seeds: "300",
    caughtBy: drivers,
  },
  {
    name: "hanging: close waits for a provider that does not close",
    file: "src/lease/lease-manager.ts",
    find: "    await this.#closeProvider();",
    replace: "    await this.provider.close();",
    caughtBy: "src/lease/close.test.ts",
  },
  {
    name: "hanging: a farm waits for a store that does not close",
    file: "src/stores/lazy-store.ts",
    find: "Promise.race([this.#opened.close(), given])",
    replace: "Promise.race([this.#opened.close()])",
    caughtBy: "src/stores/lazy-store.test.ts",
  },
  {
    name: "mixed settings: the first member that answers tells the cluster",
    file: "src/flease/tcp/discovery.ts",
    find: "      if (isMajority || answered.size >= addresses.length) succeed();",
    replace: "      if (isMajority || answered.size > 0) succeed();",
    caughtBy: mixedSettings,
  },
  {
    name: "mixed settings: who is refused by a majority hears of no quorum",
    file: "src/flease/tcp/refusals.ts",
    find: "    if (first === undefined || members - size >= majorityOf(members)) return undefined;",
    replace: "    if (first === undefined || members - size > 0) return undefined;",
    caughtBy: mixedSettings,
  },
  {
    name: "set back: members that grant nothing say that they are ready",
    file: "src/flease/protocol/acceptor.ts",
    find: "    return Math.max(0, timeOf(promised) - now.wall - this.#settings.maxClockSkewMs - 1);",
    replace: "    return Math.min(0, timeOf(promised) - now.wall);",
    caughtBy: "src/flease/protocol/acceptor.test.ts",
  },
  {
    name: "set back: run says that another holds what nobody can have",
    file: "src/cli/run/run-under-lease.ts",
    find: "isConflict: explanation.quorum }",
    replace: "isConflict: true }",
    caughtBy: "src/cli/run/run-under-lease.test.ts",
  },
  {
    name: "waiting: --wait is for the lease alone, and not for members",
    file: "src/cli/common/connection.ts",
    find: "  const openMs = options.wait === undefined ? 0 : waitMs;",
    replace: "  const openMs = 0;",
    caughtBy: "src/cli/common/connection.test.ts",
  },
  {
    name: "waiting: a signal does not end the opening",
    file: "src/cli/common/connection.ts",
    find: "  if (signal === undefined) return opening;",
    replace: "  if (signal !== undefined) return opening;",
    caughtBy: "src/cli/common/connection.test.ts",
  },
];
