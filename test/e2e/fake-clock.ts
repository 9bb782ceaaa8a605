import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A settable wall clock for one process (libfaketime). The steady clock is unaffected, as on a machine whose
 * time is set.
 */

const folders = ["/usr/lib", "/usr/local/lib", "/usr/lib64"];

function findLibrary(): string | undefined {
  const candidates = folders.flatMap((folder) => [
    join(folder, "faketime"),
    ...(existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => name.endsWith("-linux-gnu"))
          .map((name) => join(folder, name, "faketime"))
      : []),
  ]);
  return candidates.map((folder) => join(folder, "libfaketimeMT.so.1")).find((path) => existsSync(path));
}

const library = findLibrary();

/**
 * True if Debian's package `faketime` is installed (`.ci/run` does that); without it these tests cannot run.
 */
export const isFaketimeInstalled = library !== undefined;

export class FakeClock {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.clock`);
    this.set("+0");
  }

  /** The environment that puts a process on this clock. */
  get env(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /**
   * Sets the clock in libfaketime's notation: `+3s`, `-2h`, or `+0 x1.1` for a clock that has been a tenth
   * too fast since the process started.
   */
  set(what: string): void {
    // Replaced by a rename, as the process may read the file at any moment.
    writeFileSync(`${this.#file}.new`, `${what}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
