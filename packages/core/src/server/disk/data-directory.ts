import { invalidConfig } from "leasehold/common";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { damaged, diskError, syncFolder } from "../../journal/files.js";
import { Journal, type JournalOptions } from "../../journal/journal.js";
import { DirectoryLock } from "leasehold/runtime";
import type { JournalContent } from "../../journal/read-journal.js";
import { Snapshots } from "../../journal/snapshots.js";
import type { Recovered } from "../../raft/api.js";
import { founding, joining } from "../../raft/options.js";
import { RestoringState, SnapshotError, snapshotPieces } from "../../state/snapshot.js";
import { oldestVersion } from "../../state/members.js";
import { CoreState } from "../../state/state.js";
import type { CoreConfig } from "../config/config.js";
import { finishInTurns, batchesInTurns } from "../accounts/turns.js";
import { type Identity, newIdentity } from "../config/identity.js";
import { forceNewCluster, type OpenedContent } from "./force-new-cluster.js";
import { type MemberRecord, readMemberRecord, writeMemberRecord } from "./member-file.js";

/** The content of a server's disk, and its writers. */
export interface DataDirectory {
  readonly path: string;
  readonly lock: DirectoryLock;
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly record: MemberRecord;
  readonly recovered: Recovered;
  readonly state: CoreState;
  /** Bytes of a write that a crash had cut off; they were never acknowledged. */
  readonly tornBytes: number;
}

/** Obtains the identity of a server that joins a core from the other members. */
export type FindIdentity = (config: CoreConfig) => Promise<Identity>;

const cannotJoin: FindIdentity = () =>
  Promise.reject(invalidConfig("a server of this kind cannot join a core"));

const journalFolder = "wal";
const snapshotFolder = "snapshots";

/**
 * Opens a server's data directory, or creates it.
 *
 * @throws LeaseholdError `DATA_IN_USE`, `LOG_CORRUPT`, `VERSION_MISMATCH`, `DISK_FAILED`, `INVALID_CONFIG`
 */
export async function openDataDirectory(
  config: CoreConfig,
  findIdentity: FindIdentity = cannotJoin,
): Promise<DataDirectory> {
  const path = config.dataDir;
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw diskError(`the data directory ${path} cannot be made`, error);
  });
  const lock = await DirectoryLock.take(path);
  try {
    return { path, lock, ...(await openContent(path, config, {}, findIdentity)) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * The part of `openDataDirectory` after the directory is locked.
 *
 * @throws as `openDataDirectory` does
 */
export async function openContent(
  path: string,
  config: CoreConfig,
  options: JournalOptions = {},
  findIdentity: FindIdentity = cannotJoin,
): Promise<Omit<DataDirectory, "path" | "lock">> {
  await syncNames(path);
  const found = await readMemberRecord(path);
  if (found === undefined) await refuseLeftovers(path);
  const record = found?.begun ? found : await begin(path, config, findIdentity);
  const snapshots = await Snapshots.open(join(path, snapshotFolder));
  const { journal, content } = await Journal.open(join(path, journalFolder), options);
  try {
    const { recovered, state } = await recover(snapshots, content, path);
    const opened = { journal, snapshots, record, recovered, state };
    const isForced = config.forceNewCluster && !isAlone(opened);
    const used = isForced ? await forceNewCluster(path, opened) : opened;
    return { ...used, tornBytes: content.tornBytes };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

/**
 * A killed process may have left names that only the kernel knows: the directory's own name, or that of a
 * member.json which says that a journal exists. What is read counts as durable, so names are synced first.
 */
async function syncNames(path: string): Promise<void> {
  try {
    await syncFolder(dirname(path));
    await syncFolder(path);
  } catch (error) {
    throw diskError(`the data directory ${path} cannot be synced`, error);
  }
}

/**
 * Creates a new server's files, all of which are on disk before any other server hears of it. Files from an
 * earlier attempt are replaced.
 */
async function begin(path: string, config: CoreConfig, findIdentity: FindIdentity): Promise<MemberRecord> {
  if (!config.isNewCluster)
    return beginDirectory(path, await findIdentity(config), joining(), new CoreState());
  const { initialCluster, name, token } = config;
  const identity = newIdentity(initialCluster, name, token);
  return beginDirectory(path, identity, founding(identity.members.map(({ id }) => id)), new CoreState());
}

/**
 * The part of `begin` after the server's identity is known.
 *
 * @throws LeaseholdError `DISK_FAILED`
 */
export async function beginDirectory(
  path: string,
  identity: Identity,
  { hardState, snapshot }: Recovered,
  state: CoreState,
): Promise<MemberRecord> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const disk = randomBytes(8).readBigUInt64BE();
  const record: MemberRecord = { ...identity, disk, begun: false, disks: new Map(), version: oldestVersion };
  await writeMemberRecord(path, record);
  await rm(join(path, journalFolder), { recursive: true, force: true });
  await rm(join(path, snapshotFolder), { recursive: true, force: true });
  const snapshots = await Snapshots.open(join(path, snapshotFolder));
  await snapshots.save(snapshot, batchesInTurns(snapshotPieces(state)));
  const { journal } = await Journal.open(join(path, journalFolder));
  await journal.append({ installed: snapshot, hardState });
  await journal.close();
  const begun = { ...record, begun: true };
  await writeMemberRecord(path, begun);
  return begun;
}

/** Whether no other server could vote here, or is named by any entry. */
function isAlone({ record, recovered }: OpenedContent): boolean {
  const { learners, voters } = recovered.snapshot.membership;
  const isChanged = recovered.entries.some(({ kind }) => kind === "config");
  return !isChanged && learners.length === 0 && voters.length === 1 && voters[0] === record.id;
}

/** Refuses a journal without its member file, which may be all that is left of a server. */
async function refuseLeftovers(path: string): Promise<void> {
  if ((await readdir(path)).includes(journalFolder))
    throw damaged(`${path} has a journal, and member.json, which says whose it is, is missing`);
}

async function recover(
  snapshots: Snapshots,
  { hardState, base, entries }: JournalContent,
  path: string,
): Promise<{ recovered: Recovered; state: CoreState }> {
  if (hardState === undefined)
    throw damaged(`the journal in ${path} is empty, and this server has taken part before`);
  if (!(await snapshots.list()).some(({ index, term }) => index === base.index && term === base.term))
    throw damaged(`the journal in ${path} goes on from a snapshot at entry ${base.index}, which is missing`);
  // Nothing depends on these snapshots yet: they were in progress when the server crashed.
  await snapshots.removeAfter(base.index);
  const { meta, batches } = await snapshots.read(base);
  const restoring = new RestoringState();
  try {
    for await (const pieces of batches) for (const piece of pieces) restoring.take(piece);
    return {
      recovered: { hardState, snapshot: meta, entries },
      state: await finishInTurns(restoring.finish()),
    };
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    throw damaged(`the snapshot in ${path} cannot be read: ${error.message}`);
  }
}
