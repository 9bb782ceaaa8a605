import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import { FileUncertainError } from "@leasehold/files/inner/uncertain.js";
import type { FilesNode } from "@leasehold/files/inner/protocol/files-node.js";
import type { FileCall, FileHistories, FileOutput } from "./history.js";
import type { FilesWorld, Machine } from "./world.js";

/** Offsets and sizes are multiples of this, so that one call stays in one block. */
const unit = 4;

/** A program that works on the files through random nodes, and records the results. */
export class FilesClient {
  readonly #world: FilesWorld;
  readonly #histories: FileHistories;
  readonly #name: string;
  #written = 0;

  constructor(world: FilesWorld, histories: FileHistories, name: string) {
    this.#world = world;
    this.#histories = histories;
    this.#name = name;
  }

  begin(): void {
    const { random, plan, nowMs } = this.#world;
    if (nowMs >= plan.stableFromMs) return;
    this.#world.after(random.exponential(plan.thinkMs), () => {
      const machine = random.pick(this.#world.machines);
      const path = random.pick([...this.#histories.keys()]);
      if (!machine.isUp) this.begin();
      else void this.perform(machine, path, this.#draw()).then(() => this.begin());
    });
  }

  /** True if it was done. */
  async perform(machine: Machine, path: string, input: FileCall): Promise<boolean> {
    const { counters } = this.#world;
    const history = this.#histories.get(path)!;
    const calledAt = this.#world.nowMs;
    const { life, files } = machine;
    this.#world.log(`${this.#name} at ${machine.id}: ${path} ${JSON.stringify(input)}`);
    const outcome = await Promise.race([settled(files, path, input), this.#died(machine, life)]);
    const returnedAt = this.#world.nowMs;
    this.#world.log(`${this.#name}: ${JSON.stringify(outcome)}`);
    if (input.kind === "read") counters.reads += 1;
    else counters.writes += 1;
    if (outcome === "uncertain" || outcome === "uncertain at its primary") {
      counters.uncertain += 1;
      if (outcome === "uncertain") {
        history.operations.push({ input, calledAt });
        return false;
      }
      counters.settled += 1;
      history.uncertain.push({ input, calledAt, saidAt: returnedAt });
      return false;
    }
    if (typeof outcome === "string" && outcome !== "missing") {
      counters.refused += 1;
      return false;
    }
    history.operations.push({ input, output: outcome, calledAt, returnedAt });
    return true;
  }

  /** A client gets no answer from a node that has died. */
  #died(machine: Machine, life: number): Promise<"uncertain"> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (machine.life !== life) resolve("uncertain");
        else if (this.#world.nowMs < this.#world.plan.stableFromMs + 60_000) this.#world.after(50, look);
      };
      look();
    });
  }

  #draw(): FileCall {
    const { plan, random } = this.#world;
    const at = random.next();
    const offset = unit * random.below(plan.units);
    if (at < 0.45) return { kind: "read", offset, length: unit };
    if (at < 0.5) return { kind: "stat" };
    if (at < 0.6) return { kind: "create" };
    if (at < 0.87) return { kind: "write", offset, text: this.#text() };
    if (at < 0.92) return { kind: "append", text: this.#text() };
    if (at < 0.98) return { kind: "truncate", size: random.chance(0.4) ? 0 : offset };
    return { kind: "remove" };
  }

  /** No two are the same. */
  #text(): string {
    this.#written += 1;
    return `${this.#name}${this.#written.toString(36).padStart(unit - 1, "_")}`;
  }
}

async function settled(
  files: FilesNode,
  path: string,
  input: FileCall,
): Promise<FileOutput | "uncertain" | "uncertain at its primary" | `refused: ${string}`> {
  try {
    return await outputOf(files, path, input);
  } catch (error) {
    const code = error instanceof LeaseholdError ? error.code : undefined;
    if (code === "FILE_NOT_FOUND") return "missing";
    if (error instanceof FileUncertainError)
      return error.isSettledByNext ? "uncertain at its primary" : "uncertain";
    if (code === undefined) throw error;
    return `refused: ${code} ${String(error)}`;
  }
}

async function outputOf(files: FilesNode, path: string, input: FileCall): Promise<FileOutput> {
  const bytes = "text" in input ? Uint8Array.from(input.text, (letter) => letter.charCodeAt(0)) : undefined;
  if (input.kind === "stat") return { size: (await files.stat(path)).size };
  if (input.kind === "remove") {
    await files.remove(path);
    return {};
  }
  if (input.kind === "create") {
    await files.open(path, { create: "missing" });
    return {};
  }
  const file = files.named(path);
  if (input.kind === "read") {
    const read = await file.read(input.offset, input.length);
    return { text: Array.from(read, (code) => String.fromCharCode(code)).join("") };
  }
  if (input.kind === "append") return { size: await file.append(bytes!) };
  if (input.kind === "write") await file.write(input.offset, bytes!);
  if (input.kind === "truncate") await file.truncate(input.size);
  return {};
}
