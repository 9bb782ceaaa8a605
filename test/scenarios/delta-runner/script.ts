import { MemoryStore } from "../../../packages/leasehold/src/delta/memory/memory-store.js";
import { leaseRegister } from "../../../packages/leasehold/src/delta/record/registers.js";
import type { StoreAnswer, StoreRequest, StoreTraits } from "../../../packages/leasehold/src/delta/store.js";
import { PaperBench } from "../../support/paper-bench.js";
import { printTrace } from "../golden.js";
import { printCells, printOperation, printResult, resource } from "./print.js";
import { ScriptProcess } from "./process.js";

/** Runs a trace and returns the file with the output filled in. */
export async function runScript(text: string): Promise<string> {
  const world = new ScriptWorld();
  return printTrace(text, (words) => world.run(words));
}

/** Only the script ends a wait for the resource: no attempt times out. */
const attemptMs = 1_000_000;

/**
 * Stores in memory, and processes that contend for one resource on them. Time passes only by `advance`. Each
 * line of output is what a process learned at that moment.
 */
class ScriptWorld {
  #bench!: PaperBench;
  #options: Readonly<Record<string, number>> = {};
  readonly #processes = new Map<string, ScriptProcess>();
  #output: string[] = [];
  #saidAtMs = 0;
  /** The last operation printed. The same operation on another store is added to its line. */
  #last: { process: string; stores: number[]; text: string } | undefined;
  #holders = "none";
  #error: unknown;

  async run([verb = "", ...rest]: readonly string[]): Promise<readonly string[]> {
    this.#output = [];
    this.#last = undefined;
    if (verb === "stores") this.#begin(rest);
    else if (verb === "process") this.#addProcess(rest);
    else if (verb === "advance") await this.#advance(Number(rest[0]));
    else if (verb === "store") this.#store(rest);
    else if (verb === "show") this.#show();
    else this.#order(this.#process(verb), rest);
    await this.#settle();
    if (this.#error !== undefined) throw this.#error;
    return this.#output;
  }

  #begin(words: readonly string[]): void {
    const kinds = words.filter((word) => !word.includes("="));
    this.#options = optionsOf(words);
    this.#bench = new PaperBench(kinds as StoreTraits["kind"][]);
    const latencyMs = this.#options["latency"] ?? 0;
    for (const medium of this.#bench.media) medium.latencyMs = { request: latencyMs, answer: latencyMs };
  }

  #addProcess([name = "", ...words]: readonly string[]): void {
    const { lease = 2_000, delay = 50, rho = 0, poll = 500 } = this.#options;
    const environment = {
      farm: this.#bench.farm,
      writer: name,
      random: this.#bench.world.random,
      settings: { leaseMsMax: lease, delayMs: delay, pollMs: poll, clockRateError: rho },
    };
    const stores = this.#bench.media.map((medium) => new MemoryStore(medium, name));
    const listener = (process: string, store: number, request: StoreRequest, answer: StoreAnswer) =>
      this.#tell(process, store, printOperation(request, answer));
    const rate = optionsOf(words)["rate"] ?? 1;
    this.#processes.set(name, new ScriptProcess(this.#bench.world, rate, environment, stores, listener));
  }

  #order(process: ScriptProcess, [verb = ""]: readonly string[]): void {
    if (verb === "attempt") this.#start(this.#attempt(process));
    else if (verb === "renew") this.#start(this.#renew(process));
    else if (verb === "release") this.#start(this.#release(process));
    else if (verb === "stop") process.stop();
    else if (verb === "continue") process.continue();
    else if (verb === "crash") process.crash();
    else throw new Error(`no such order: ${verb}`);
  }

  #start(work: Promise<void>): void {
    work.catch((error: unknown) => (this.#error ??= error));
  }

  async #attempt(process: ScriptProcess): Promise<void> {
    const { lease: leaseMs = 2_000 } = this.#options;
    const deadlineMs = process.now().monotonicMs + attemptMs;
    const result = await process.driver.run(process.protocol.attempt({ resource, leaseMs, deadlineMs }));
    if (result.kind === "granted") process.tenure = result.tenure;
    this.#say(`${process.name}: ${printResult(result)}`);
  }

  async #renew(process: ScriptProcess): Promise<void> {
    const { tenure } = process;
    if (tenure === undefined) throw new Error(`${process.name} has no lease`);
    const { lease: leaseMs = 2_000 } = this.#options;
    const isRenewed = await process.driver.run(process.protocol.renew(tenure, leaseMs));
    const lost = tenure.lost === undefined ? "" : `, the lease is lost (${tenure.lost})`;
    this.#say(`${process.name}: ${isRenewed ? "renewed" : `not renewed${lost}`}`);
  }

  async #release(process: ScriptProcess): Promise<void> {
    const { tenure } = process;
    if (tenure === undefined) throw new Error(`${process.name} has no lease`);
    await process.driver.run(process.protocol.release(tenure));
    this.#say(`${process.name}: released`);
  }

  #store([index = "", verb = "", at = ""]: readonly string[]): void {
    const medium = this.#bench.media[Number(index)];
    if (medium === undefined) throw new Error(`no such store: ${index}`);
    if (verb === "stall" && (at === "requests" || at === "answers")) medium.stall(at);
    else if (verb === "resume") medium.resume();
    else throw new Error(`no such order to a store: ${verb} ${at}`);
  }

  #show(): void {
    for (const [index, medium] of this.#bench.media.entries())
      this.#say(`store ${index} has ${printCells(medium.cells(leaseRegister(resource)))}`);
  }

  /** Advances in small steps, so that the end of a lease is seen when it comes. */
  async #advance(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 1) {
      await this.#bench.world.advance(1);
      this.#checkHolders();
    }
  }

  async #settle(): Promise<void> {
    await this.#bench.world.settle();
    this.#checkHolders();
  }

  /** Asks each process whether it holds the resource, as its program would, and prints changes. */
  #checkHolders(): void {
    const holders = [...this.#processes.values()].filter(({ isHolding }) => isHolding);
    if (holders.length > 1) throw new Error("two holders");
    const text = holders.length === 0 ? "none" : holders.map(({ name }) => name).join(" ");
    if (text === this.#holders) return;
    this.#holders = text;
    this.#say(`HOLDER ${text}`);
  }

  #tell(process: string, store: number, text: string): void {
    const last = this.#last;
    const isSame = last?.process === process && last.text === text && this.#saidAtMs === this.#bench.nowMs;
    if (isSame) {
      last.stores.push(store);
      this.#output[this.#output.length - 1] = `${process} > ${last.stores.join(" ")}  ${text}`;
      return;
    }
    this.#say(`${process} > ${store}  ${text}`);
    this.#last = { process, stores: [store], text };
  }

  #say(line: string): void {
    const { nowMs } = this.#bench;
    if (nowMs !== this.#saidAtMs) this.#output.push(`time ${Number(nowMs.toFixed(1))}`);
    this.#saidAtMs = nowMs;
    this.#last = undefined;
    this.#output.push(line);
  }

  #process(name: string): ScriptProcess {
    const process = this.#processes.get(name);
    if (process === undefined) throw new Error(`no such process: ${name}`);
    return process;
  }
}

/** Parses words such as `lease=2000`. */
function optionsOf(words: readonly string[]): Record<string, number> {
  const options: Record<string, number> = {};
  for (const word of words) {
    const [name, value] = word.split("=");
    if (name !== undefined && value !== undefined) options[name] = Number(value);
  }
  return options;
}
