import { chmod, link, mkdir, mkdtemp, open, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { certFailure } from "./failure.js";

/** Private keys are for their owner only. */
export const secretMode = 0o600;
export const publicMode = 0o644;

/** Writes a file elsewhere and then puts it in place: a reader sees the whole former or the whole new one. */
async function placed(
  path: string,
  text: string,
  mode: number,
  place: (from: string) => Promise<void>,
): Promise<void> {
  const beside = await mkdtemp(join(dirname(path), ".cert-"));
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

/** @throws CommandFailure `CERT_EXISTS` */
export async function createFile(path: string, text: string, mode: number): Promise<void> {
  await placed(path, text, mode, async (from) => {
    try {
      // Unlike a rename, a link replaces nothing.
      await link(from, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw certFailure("CERT_EXISTS", `${path} exists already, and is not overwritten`);
    }
  });
}

export async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  await placed(path, text, mode, (from) => rename(from, path));
}

/** Creates a folder for secrets, unless it exists. */
export async function secretFolder(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined) await chmod(path, 0o700);
}

/** `undefined` if there is no such file. */
export async function textIn(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw certFailure("CERT_UNREADABLE", `${path} cannot be read: ${message}`);
  }
}
