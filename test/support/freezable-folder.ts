import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdirSync, openSync } from "node:fs";

/** Mounting and freezing a file system needs root on Linux. */
export const canFreeze = process.platform === "linux" && process.getuid?.() === 0;

const imageBytes = 16 << 20;

/** A folder with a file system of its own, on which writes hang while it is frozen. */
export class FreezableFolder {
  readonly path: string;
  #isFrozen = false;

  /** @param path the folder; its file system is kept in `PATH.image` */
  constructor(path: string) {
    this.path = path;
    const image = openSync(`${path}.image`, "w");
    ftruncateSync(image, imageBytes);
    closeSync(image);
    execFileSync("mkfs.ext4", ["-q", `${path}.image`]);
    mkdirSync(path, { recursive: true });
    execFileSync("mount", ["-o", "loop", `${path}.image`, path]);
  }

  freeze(): void {
    execFileSync("fsfreeze", ["-f", this.path]);
    this.#isFrozen = true;
  }

  thaw(): void {
    if (this.#isFrozen) execFileSync("fsfreeze", ["-u", this.path]);
    this.#isFrozen = false;
  }

  unmount(): void {
    this.thaw();
    execFileSync("umount", ["-l", this.path]);
  }
}
