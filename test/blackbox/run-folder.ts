import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where a run's journals and clocks are: gone at the end, unless somebody wants to see them. */
export class RunFolder {
  readonly path: string;
  #isKept: boolean;

  /** A folder that was asked for is kept. */
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
