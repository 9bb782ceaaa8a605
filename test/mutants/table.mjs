// Mistakes that were made once, or would be easy to make: each text stands exactly once in its file.
const powerLoss = "src/core/server/disk/power-loss.test.ts";

export const mutants = [
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
    find: "      await this.#snapshots.save(snapshot, received?.pieces ?? []);",
    replace:
      "      await this.#snapshots.save(snapshot, received?.pieces ?? []);\n" +
      "      await this.#snapshots.removeBefore(snapshot.index);\n" +
      "      await this.#snapshots.removeBefore(this.#base + 1);",
    caughtBy: powerLoss,
  },
  {
    name: "disk: another server's disk is remembered before it is on the own one",
    file: "src/core/server/disk/disk-book.ts",
    find: "    await writeMemberRecord(this.#folder, { ...this.#record, disks });\n    this.#disks = disks;",
    replace:
      "    this.#disks = disks;\n    await writeMemberRecord(this.#folder, { ...this.#record, disks });",
    caughtBy: powerLoss,
  },
  {
    name: "disk: one write of member.json that failed locks all out",
    file: "src/core/server/disk/disk-book.ts",
    find: "    this.#last = learning.catch(() => undefined);",
    replace: "    this.#last = learning;",
    caughtBy: powerLoss,
  },
];
