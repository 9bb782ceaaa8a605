import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import { getOrInsert } from "leasehold/inner/common/maps.js";
import type { ReplicatedFile } from "@leasehold/files/inner/types.js";
import { FileUncertainError } from "@leasehold/files/inner/uncertain.js";
import type { NamedFiles } from "@leasehold/files/inner/tree/named-files.js";
import { blockSize, type FilesWorld, type Machine } from "../world.js";
import { snapshotIn } from "./history.js";
import type { NamesCall, NamesOperations, NamesOutput } from "./history.js";
import type { Acknowledged } from "./judge-changes.js";
import type { NamesCounters } from "./plan.js";

/** Only a few names, so that clients collide: files and folders that may replace each other. */
const paths = ["x", "y", "d/x", "d/y"];
const folders = ["d", "e"];

/** An upload that its client breaks off. */
class BrokenOff extends Error {}

/** A program that works on files by path, through random nodes, and records the results. */
export class NamesClient {
  readonly #world: FilesWorld;
  readonly #counters: NamesCounters;
  readonly #operations: NamesOperations;
  readonly #name: string;
  readonly #handles = new Map<string, ReplicatedFile>();
  readonly #acknowledged: Acknowledged[];
  #handlesOf: NamedFiles | undefined;
  /** The version made by the last put. */
  #version: string | undefined;
  #texts = 0;

  constructor(
    world: FilesWorld,
    counters: NamesCounters,
    operations: NamesOperations,
    acknowledged: Acknowledged[],
    name: string,
  ) {
    this.#acknowledged = acknowledged;
    this.#world = world;
    this.#counters = counters;
    this.#operations = operations;
    this.#name = name;
  }

  begin(): void {
    const { random, plan, nowMs } = this.#world;
    if (nowMs >= plan.stableFromMs) return;
    this.#world.after(random.exponential(plan.thinkMs), () => {
      const machine = random.pick(this.#world.machines);
      if (!machine.isUp) this.begin();
      else void this.perform(machine, this.#draw()).then(() => this.begin());
    });
  }

  /** True if the call was done, or was refused because of what it found. */
  async perform(machine: Machine, call: NamesCall): Promise<boolean> {
    const calledAt = this.#world.nowMs;
    const { life, named } = machine;
    this.#world.log(`${this.#name} at ${machine.id}: ${JSON.stringify(call)}`);
    this.#version = undefined;
    const breaks = call.kind === "put" && this.#world.random.chance(0.15);
    const done = this.#settled(named!, call, breaks);
    const outcome = await Promise.race([done, this.#died(machine, life)]);
    const returnedAt = this.#world.nowMs;
    this.#world.log(`${this.#name}: ${JSON.stringify(outcome)}`);
    this.#counters[call.kind] += 1;
    if (outcome === "uncertain") {
      this.#counters.uncertain += 1;
      this.#operations.push({ input: call, calledAt });
      return false;
    }
    if (typeof outcome === "string" && outcome.startsWith("refused")) {
      this.#counters.refused += 1;
      return false;
    }
    if (outcome === "broken off") {
      this.#counters.brokenOff += 1;
      return false;
    }
    this.#operations.push({ input: call, output: outcome as NamesOutput, calledAt, returnedAt });
    if (outcome === "done") this.#acknowledged.push({ call, version: this.#version, calledAt, returnedAt });
    return true;
  }

  #died(machine: Machine, life: number): Promise<"uncertain"> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (machine.life !== life) resolve("uncertain");
        else if (this.#world.nowMs < this.#world.plan.stableFromMs + 60_000) this.#world.after(50, look);
      };
      look();
    });
  }

  #draw(): NamesCall {
    const { random } = this.#world;
    const at = random.next();
    const path = random.pick(paths);
    if (at < 0.3) return { kind: "put", path, text: this.#text(), ifMissing: random.chance(0.3) };
    if (at < 0.55)
      return { kind: "read", path: random.chance(0.2) ? `d${snapshotIn}/${random.pick(["x", "y"])}` : path };
    if (at < 0.65) return { kind: "append", path, text: this.#text() };
    if (at < 0.73) return { kind: "remove", path: random.pick([...paths, ...folders]) };
    if (at < 0.78) return { kind: "list" };
    if (at < 0.81) return { kind: random.chance(0.6) ? "snapshot" : "unsnapshot", path: "d" };
    if (at < 0.87)
      return {
        kind: "quota",
        path: random.pick(folders),
        files: random.chance(0.3) ? null : random.below(3),
      };
    const kind = random.chance(0.6) ? "rename" : "copy";
    const [from, to] = random.chance(0.4)
      ? [random.pick(folders), random.pick(folders)]
      : [path, random.pick(paths)];
    return from === to ? { kind: "read", path } : { kind, from, to };
  }

  /** No two values are the same, and mixing two of equal length never yields a third. */
  #text(): string {
    this.#texts += 1;
    const word = `${this.#name}${this.#texts.toString(36)}.`;
    return word.repeat(1 + this.#world.random.below(5));
  }

  async #settled(
    files: NamedFiles,
    call: NamesCall,
    breaks: boolean,
  ): Promise<NamesOutput | "uncertain" | "broken off" | `refused: ${string}`> {
    try {
      return await this.#outputOf(files, call, breaks);
    } catch (error) {
      if (error instanceof BrokenOff) return "broken off";
      const code = error instanceof LeaseholdError ? error.code : undefined;
      if (code === undefined) throw error;
      if (code === "FILE_NOT_FOUND") return "missing";
      if (code === "FILE_EXISTS") return "exists";
      if (code === "QUOTA_EXCEEDED") {
        this.#counters.overQuota += 1;
        return "full";
      }
      if (error instanceof FileUncertainError) return "uncertain";
      if (code === "FILE_DAMAGED" && this.#world.nowMs > this.#world.plan.stableFromMs)
        this.#world.report("progress", `a content is gone: ${String(error)}`);
      return `refused: ${code} ${String(error)}`;
    }
  }

  async #outputOf(files: NamedFiles, call: NamesCall, breaks: boolean): Promise<NamesOutput> {
    switch (call.kind) {
      case "put":
        this.#version = (
          await files.put(call.path, this.#upload(call.text, breaks), { ifMissing: call.ifMissing })
        ).version;
        return "done";
      case "read":
        return { text: await this.#read(files, call.path) };
      case "append":
        return { offset: await this.#handle(files, call.path).append(bytesOf(call.text)) };
      case "remove":
        await files.remove(call.path, { recursive: true });
        return "done";
      case "rename":
      case "copy":
        await files[call.kind](call.from, call.to, { over: "anything" });
        return "done";
      case "quota":
        await files.setQuota(call.path, call.files === null ? null : { bytes: null, files: call.files });
        return "done";
      case "snapshot":
        await files.makeFolder(call.path + snapshotIn);
        return "done";
      case "unsnapshot":
        await files.remove(call.path + snapshotIn, { recursive: true });
        return "done";
      case "list":
        return { paths: (await files.list("")).files.map(({ path }) => path) };
    }
  }

  /** An open file is a path with methods, so it is kept whatever happens to the path. */
  #handle(files: NamedFiles, path: string): ReplicatedFile {
    if (this.#handlesOf !== files) this.#handles.clear();
    this.#handlesOf = files;
    return getOrInsert(this.#handles, path, () => files.named(path));
  }

  async #read(files: NamedFiles, path: string): Promise<string> {
    if (this.#world.random.chance(0.4)) return textOf(await this.#handle(files, path).read(0, 4_096));
    const entry = await files.entry(path);
    if (entry === undefined) throw new LeaseholdError("FILE_NOT_FOUND");
    if (entry.kind === "folder") throw new LeaseholdError("FILE_EXISTS");
    let text = "";
    while (text.length < entry.size) {
      const bytes = await entry.read(text.length, 3 * blockSize);
      if (bytes.length === 0) throw new Error(`${path} ends at ${text.length} of ${entry.size}`);
      text += textOf(bytes);
    }
    return text;
  }

  /** The bytes in pieces. Between pieces the client may stall; at the end it may break off. */
  async *#upload(text: string, breaks: boolean): AsyncGenerator<Uint8Array> {
    const { random } = this.#world;
    for (let at = 0; at < text.length; at += 5) {
      if (random.chance(0.1)) {
        this.#counters.stalled += 1;
        await new Promise<void>((resolve) => this.#world.after(random.next() * 2_500, resolve));
      }
      yield bytesOf(text.slice(at, at + 5));
    }
    if (breaks) throw new BrokenOff();
  }
}

const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const textOf = (bytes: Uint8Array): string => Array.from(bytes, (code) => String.fromCharCode(code)).join("");
