import { open, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { LeaseholdError } from "../../../lease/errors.js";
import { diskError, syncFolder } from "../../journal/files.js";
import type { MemberId } from "../../raft/types.js";
import { type KnownMember, idText } from "../common/identity.js";

const format = 1;
const fileName = "member.json";

/** Who the data directory belongs to. */
export interface MemberRecord {
  readonly id: MemberId;
  readonly cluster: bigint;
  /** Drawn when the directory was made: a server that comes back without its disk bears another. */
  readonly disk: bigint;
  /** False until the journal has its beginning: before, there is nothing that could be lost. */
  readonly begun: boolean;
  readonly members: readonly KnownMember[];
  /** The disks of the others, since they were first heard of. */
  readonly disks: ReadonlyMap<MemberId, bigint>;
}

const id = z
  .string()
  .regex(/^[0-9a-f]{1,16}$/)
  .transform((text) => BigInt(`0x${text}`));
const schema = z.object({
  format: z.literal(format),
  id,
  cluster: id,
  disk: id,
  begun: z.boolean(),
  members: z.array(z.object({ id, name: z.string(), peerUrls: z.array(z.string()) })),
  disks: z.array(z.tuple([id, id])),
});

/** Undefined if there is none. */
export async function readMemberRecord(folder: string): Promise<MemberRecord | undefined> {
  const path = join(folder, fileName);
  let content: unknown;
  try {
    content = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new LeaseholdError("LOG_CORRUPT", `${path} cannot be read: ${(error as Error).message}`);
  }
  const found = z.object({ format: z.number() }).safeParse(content);
  if (found.success && found.data.format > format)
    throw new LeaseholdError(
      "VERSION_MISMATCH",
      `the data directory ${folder} is of a newer version of Leasehold (format ${found.data.format}; this one knows ${format})`,
    );
  const parsed = schema.safeParse(content);
  if (!parsed.success)
    throw new LeaseholdError("LOG_CORRUPT", `${path} is damaged: ${z.prettifyError(parsed.error)}`);
  const { disks, ...rest } = parsed.data;
  return { ...rest, disks: new Map(disks) };
}

/** The old content or the new one is there, whatever happens. */
export async function writeMemberRecord(folder: string, record: MemberRecord): Promise<void> {
  const path = join(folder, fileName);
  const content = {
    ...record,
    format,
    id: idText(record.id),
    cluster: idText(record.cluster),
    disk: idText(record.disk),
    members: record.members.map((member) => ({ ...member, id: idText(member.id) })),
    disks: [...record.disks].map((pair) => pair.map(idText)),
  };
  try {
    const file = await open(`${path}.new`, "w");
    try {
      await file.writeFile(`${JSON.stringify(content, undefined, 2)}\n`);
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
