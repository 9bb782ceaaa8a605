import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folder of a run's journals and clocks. Deleted at the end unless it is to be kept. */
export class RunFolder {
  readonly path: string;
  #isKept: boolean;

  /** A folder given by the user is kept. */
  constructor(path?: string) {
    this.#isKept = path !== undefined;
    if (path !== undefined) mkdirSync(path, { recursive: true });
    this.path = path ?? mkdtempSync(join(tmpdir(), "leasehold-blackbox-"));
    process.once("exit", () => {
      if (!this.#isKept) rmSync(this.path, { recursive: true, force: true });
    });
  }

  get isKept(): boolean {
    return this.#isKept;
  }

  keep(): void {
    this.#isKept = true;
  }

  journals(): string[] {
    return readdirSync(this.path)
      .filter((name) => name.endsWith(".journal"))
      .map((name) => join(this.path, name));
  }
}
