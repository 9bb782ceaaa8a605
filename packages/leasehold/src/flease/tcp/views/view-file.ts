import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { LeaseholdError } from "../../../lease/errors.js";
import { isAddress } from "../../../runtime/address.js";
import { readFiledView, writeFiledView } from "../../views/document.js";
import type { FiledView } from "../../views/document.js";

/** The file of a member's view, so that a restart does not return to an older one. */
export class ViewFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * The stored view; `undefined` if the file does not exist.
   *
   * @throws LeaseholdError `INVALID_CONFIG` for a file that cannot be read or has other content: without it
   * the member might return to an older view. `VERSION_MISMATCH` for a file of a later version of Leasehold.
   */
  read(): FiledView | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#path, "utf8"));
      return readFiledView(value, isAddress);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      const text = `the file of this member's view, ${this.#path}, cannot be read`;
      const isLater = cause instanceof LeaseholdError && cause.code === "VERSION_MISMATCH";
      throw new LeaseholdError(
        isLater ? cause.code : "INVALID_CONFIG",
        `${text}: ${(cause as Error).message}`,
        { cause },
      );
    }
  }

  /** Path of the file, for messages. */
  get path(): string {
    return this.#path;
  }

  /** Writes and syncs the file: the view must not count before. Throws the file system's error. */
  write(view: FiledView): void {
    const next = `${this.#path}.new`;
    const file = openSync(next, "w", 0o600);
    try {
      // Not `writeSync`, which may write only a part.
      writeFileSync(file, JSON.stringify(writeFiledView(view)));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, this.#path);
    const folder = openSync(dirname(this.#path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}
