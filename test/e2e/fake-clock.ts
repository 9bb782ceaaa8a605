import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The wall clock of one process, to be set as a test likes (libfaketime). The steady clock stays what it is, as on a machine
 * whose time somebody sets.
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

/** Debian's package `faketime` (`.ci/run` installs it); without it these tests cannot run. */
export const isFaketimeInstalled = library !== undefined;

export class FakeClock {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.clock`);
    this.set("+0");
  }

  /** What a process needs to live by this clock. */
  get env(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** In libfaketime's words: `+3s`, `-2h`, `+0 x1.1` for a clock that is a tenth too fast from the process's start on. */
  set(what: string): void {
    // Swapped in, as the process reads it all the time.
    writeFileSync(`${this.#file}.new`, `${what}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
