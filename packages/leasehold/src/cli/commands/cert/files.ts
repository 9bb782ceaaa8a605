import {
  chmod,
  chown,
  link,
  mkdir,
  mkdtemp,
  open,
  readFile,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { certFailure } from "./failure.js";

/** Only the owner may read private keys. */
export const secretMode = 0o600;
export const publicMode = 0o644;

const workFolder = ".cert-";
/** The prefix of temporary folders in which files are prepared. */
export const workFolderPattern = /^\.cert-[A-Za-z0-9]{6}$/;

/** Creates a private folder in which files for `folder` are prepared, on the same file system. */
export function makeWorkFolder(folder: string): Promise<string> {
  return mkdtemp(join(folder, workFolder));
}

/**
 * Writes a file elsewhere and then moves it into place, so that a reader sees either the complete old file or
 * the complete new one.
 */
async function placed(
  path: string,
  text: string | Uint8Array,
  mode: number,
  place: (from: string) => Promise<void>,
): Promise<void> {
  const beside = await makeWorkFolder(dirname(path));
  try {
    const from = join(beside, basename(path));
    const file = await open(from, "wx", mode);
    try {
      await file.writeFile(text);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await place(from);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** Keeps the old file's owner and group, which may allow a service to read it. */
async function keepReaders(from: string, former: string): Promise<void> {
  const [own, { uid, gid, mode }] = await Promise.all([stat(from), stat(former)]);
  await chown(from, uid, gid);
  await chmod(from, own.mode | (mode & 0o060));
}

/**
 * @param before runs after the text is written and before it is moved into place, so that a full disk changes
 *   neither file.
 * @throws CommandFailure `CERT_EXISTS`
 */
export async function createFile(
  path: string,
  text: string | Uint8Array,
  mode: number,
  before?: () => Promise<void>,
): Promise<void> {
  await placed(path, text, mode, async (from) => {
    await before?.();
    try {
      // Unlike a rename, a link doesn't replace an existing file.
      await link(from, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw certFailure("CERT_EXISTS", `${path} exists already, and is not overwritten`);
    }
  });
}

/** A symbolic link is kept; its target is replaced. */
export async function replaceFile(
  path: string,
  text: string,
  mode: number,
  before?: () => Promise<void>,
): Promise<void> {
  const target = await realpath(path).catch(() => path);
  await placed(target, text, mode, async (from) => {
    await keepReaders(from, target).catch(() => undefined);
    await before?.();
    await rename(from, target);
  });
}

/** Creates a folder for secrets unless it exists. */
export async function secretFolder(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined) await chmod(path, 0o700);
}

/** The file's text; `undefined` if there is no such file. */
export async function textIn(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw certFailure("CERT_UNREADABLE", `${path} cannot be read: ${message}`);
  }
}
