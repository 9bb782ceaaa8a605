import { open, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRecord, recordOrEmpty, LeaseholdError } from "leasehold/common";
import { checksumOf } from "leasehold/journal";
import { diskError, ownFile, ownFileMode, syncFolder } from "../../journal/files.js";
import type { MemberId } from "../../raft/types.js";
import { newestVersion, oldestVersion } from "../../state/members.js";
import { type KnownMember, idText } from "../config/identity.js";

/** The former format had no checksum, so a flipped bit in an id turned it into another server. */
const formerFormat = 1;
const format = 2;
/**
 * The format of clusters beyond version 7. Servers of version 7 know only the previous format, and refuse to
 * start with this one.
 */
const laterFormat = 3;
const fileName = "member.json";

/** The owner of a data directory. */
export interface MemberRecord {
  readonly id: MemberId;
  readonly cluster: bigint;
  /** Generated with the directory: a server that comes back without its disk has another id. */
  readonly disk: bigint;
  /** False until the journal exists. Before that there is nothing to lose. */
  readonly begun: boolean;
  readonly members: readonly KnownMember[];
  /** The disks of the other servers, as first heard of. */
  readonly disks: ReadonlyMap<MemberId, bigint>;
  /** The cluster's version as known here. An older server does not start with this directory. */
  readonly version: number;
}

/** Returns undefined if there is no file. */
export async function readMemberRecord(folder: string): Promise<MemberRecord | undefined> {
  const path = join(folder, fileName);
  let content: unknown;
  try {
    await ownFile(path);
    content = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new LeaseholdError("LOG_CORRUPT", `${path} cannot be read: ${(error as Error).message}`);
  }
  const { format: found } = recordOrEmpty(content);
  const newer = (what: string) =>
    new LeaseholdError(
      "VERSION_MISMATCH",
      `the data directory ${folder} is of a newer version of Leasehold (${what})`,
    );
  if (typeof found === "number" && found > laterFormat)
    throw newer(`format ${found}; this one knows ${laterFormat}`);
  const damaged = (where: string) => new LeaseholdError("LOG_CORRUPT", `${path} is damaged: ${where}`);
  const record = recordOf(content, damaged);
  const { checksum, ...rest } = recordOrEmpty(content);
  if (found !== formerFormat && checksum !== checksumOfRecord(rest)) throw damaged("its checksum is wrong");
  if (record.version > newestVersion)
    throw newer(`its cluster speaks version ${record.version}; this one ${newestVersion}`);
  return record;
}

/** Computed over all values in order; white space does not count. */
function checksumOfRecord(content: object): number {
  return checksumOf(Buffer.from(JSON.stringify(content)), 0);
}

/** Parses the record; for an invalid value, throws the result of `damaged`. */
function recordOf(content: unknown, damaged: (where: string) => Error): MemberRecord {
  const idAt = (value: unknown, where: string): bigint => {
    if (typeof value !== "string" || !/^[0-9a-f]{1,16}$/.test(value))
      throw damaged(`${where} should be 1 to 16 hexadecimal digits`);
    return BigInt(`0x${value}`);
  };
  const listAt = (value: unknown, where: string): readonly unknown[] => {
    if (!Array.isArray(value)) throw damaged(`${where} should be a list`);
    return value;
  };
  const textAt = (value: unknown, where: string): string => {
    if (typeof value !== "string") throw damaged(`${where} should be text`);
    return value;
  };
  if (!isRecord(content)) throw damaged("it should be one JSON object");
  if (![formerFormat, format, laterFormat].includes(content["format"] as number))
    throw damaged(`format should be ${format}`);
  const { begun, version = oldestVersion } = content;
  if (typeof begun !== "boolean") throw damaged("begun should be true or false");
  if (typeof version !== "number" || !Number.isSafeInteger(version))
    throw damaged("version should be a number");
  const members = listAt(content["members"], "members").map((value, index) => {
    const at = `members[${index}]`;
    const member = recordOrEmpty(value);
    const urls = listAt(member["peerUrls"], `${at}.peerUrls`);
    return {
      id: idAt(member["id"], `${at}.id`),
      name: textAt(member["name"], `${at}.name`),
      peerUrls: urls.map((url, place) => textAt(url, `${at}.peerUrls[${place}]`)),
    };
  });
  const disks = listAt(content["disks"], "disks").map((value, index): [MemberId, bigint] => {
    const [member, disk, ...rest] = listAt(value, `disks[${index}]`);
    if (rest.length > 0) throw damaged(`disks[${index}] should be a pair`);
    return [idAt(member, `disks[${index}][0]`), idAt(disk, `disks[${index}][1]`)];
  });
  return {
    id: idAt(content["id"], "id"),
    cluster: idAt(content["cluster"], "cluster"),
    disk: idAt(content["disk"], "disk"),
    begun,
    members,
    disks: new Map(disks),
    version,
  };
}

/** Atomic: either the old or the new content survives a crash. */
export async function writeMemberRecord(folder: string, record: MemberRecord): Promise<void> {
  const path = join(folder, fileName);
  const content = {
    ...record,
    format: record.version > oldestVersion ? laterFormat : format,
    id: idText(record.id),
    cluster: idText(record.cluster),
    disk: idText(record.disk),
    members: record.members.map((member) => ({ ...member, id: idText(member.id) })),
    disks: [...record.disks].map((pair) => pair.map(idText)),
  };
  try {
    const file = await open(`${path}.new`, "w", ownFileMode);
    try {
      const checked = { ...content, checksum: checksumOfRecord(content) };
      await file.writeFile(`${JSON.stringify(checked, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
    await syncFolder(dirname(path));
  } catch (error) {
    throw diskError(`${path} cannot be written`, error);
  }
}
