import { randomBytes } from "node:crypto";
import { type FileHandle, link, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { type Server, connect, createServer } from "node:net";
import { join } from "node:path";
import { LeaseholdError } from "../lease/errors.js";

/**
 * Timeout of a probe, ms. For a living process the kernel accepts the connection, however busy the process
 * is.
 */
const probeMs = 2_000;

/** Linux limits the path of a socket to 107 bytes; a stale socket is renamed to a longer path. */
const pathBytesMax = 107 - 16;

/**
 * Reserves a data directory for one process, which listens on a socket there as long as it lives. A lock file
 * would outlast a killed process, and a process id means nothing in another container; but a socket whose
 * process is dead refuses connections.
 */
export class DirectoryLock {
  readonly #server: Server;
  readonly #path: string;
  readonly #inode: number;
  readonly #handle: FileHandle | undefined;

  private constructor(server: Server, path: string, inode: number, handle: FileHandle | undefined) {
    this.#server = server;
    this.#path = path;
    this.#inode = inode;
    this.#handle = handle;
  }

  /**
   * @param name the socket's file name
   * @throws LeaseholdError `DATA_IN_USE`, `INVALID_CONFIG`
   */
  static async take(folder: string, name = "lock"): Promise<DirectoryLock> {
    await mkdir(folder, { recursive: true });
    const path = join(folder, name);
    if (Buffer.byteLength(path) <= pathBytesMax) return DirectoryLock.#at(path, path, undefined);
    if (process.platform !== "linux")
      throw new LeaseholdError(
        "INVALID_CONFIG",
        `the path of the data directory ${folder} is too long for its lock`,
      );
    // A short path to the same directory.
    const handle = await open(folder);
    try {
      return await DirectoryLock.#at(path, join("/proc/self/fd", String(handle.fd), name), handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** @param socket the path by which the kernel finds `path` */
  static async #at(path: string, socket: string, handle: FileHandle | undefined): Promise<DirectoryLock> {
    let server = await listen(socket);
    if (server === undefined) {
      if (!(await removeStale(socket))) throw inUse(path);
      server = await listen(socket);
    }
    if (server === undefined) throw inUse(path);
    return new DirectoryLock(server, path, (await stat(path)).ino, handle);
  }

  /** False if the directory was removed or replaced: the server must then stop. */
  async isOurs(): Promise<boolean> {
    const found = await stat(this.#path).catch(() => undefined);
    return found?.ino === this.#inode;
  }

  async release(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#handle?.close();
  }
}

function inUse(path: string): LeaseholdError {
  return new LeaseholdError("DATA_IN_USE", `another process uses the data directory: it holds ${path}`);
}

/** `undefined` if there is a socket already. */
function listen(path: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(path, () => resolve(server));
    server.unref();
  });
}

/**
 * Removes a dead socket; returns false if it is alive. Two processes that start at the same time may both
 * find it. So each renames it first, and a process that turns out to have renamed a live one restores it and
 * gives up.
 */
async function removeStale(path: string): Promise<boolean> {
  if (await isAlive(path)) return false;
  const aside = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
  const alive = await isAlive(aside);
  if (alive) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
  return !alive;
}

function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (alive: boolean) => {
      socket.destroy();
      resolve(alive);
    };
    socket.setTimeout(probeMs, () => settle(true));
    socket.once("connect", () => settle(true));
    socket.once("error", (error: NodeJS.ErrnoException) =>
      settle(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
    );
  });
}
