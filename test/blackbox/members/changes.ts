import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ViewStatus } from "../../../packages/leasehold/src/flease/views/member-change.js";
import type { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import { type Build, commandOf, memberProgram } from "../build.js";
import { pick } from "../plan.js";
import { resources, ttlMs } from "../settings.js";
import type { MembersStage } from "./stage.js";

export type Change = "add" | "remove" | "replace" | "roll" | "handover";

export interface ChangeCount {
  /** Commands that ended with 0. */
  done: number;
  /** Commands that were refused, or given up after a minute; a change that had begun was waited for. */
  failed: number;
}

const commandMsMax = 60_000;
/** Some changes cannot begin, such as one that needs a member that is dead. */
const within = "20s";
const membersMin = 3;
const membersMax = 5;
const pauseMs = { min: 0.3 * ttlMs, max: 1.5 * ttlMs };

/** An operator that changes the members with the command, one change after another, and hands leases over. */
export class Changes {
  readonly counts: Record<Change, ChangeCount> = {
    add: { done: 0, failed: 0 },
    remove: { done: 0, failed: 0 },
    replace: { done: 0, failed: 0 },
    roll: { done: 0, failed: 0 },
    handover: { done: 0, failed: 0 },
  };
  /** The distinct reasons of failures, without numbers. */
  readonly reasons = new Set<string>();
  viewNumber = 0;
  readonly #stage: MembersStage;
  readonly #build: Build;
  readonly #folder: string;
  readonly #random: Xorshift;
  /** The members of the newest view seen. */
  #members: readonly string[];

  constructor(stage: MembersStage, build: Build, folder: string, random: Xorshift) {
    this.#stage = stage;
    this.#build = build;
    this.#folder = folder;
    this.#random = random;
    this.#members = [...stage.members.keys()];
  }

  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#change();
      await this.#handOver();
      await sleep(pauseMs.min + (pauseMs.max - pauseMs.min) * this.#random.next());
    }
  }

  async #change(): Promise<void> {
    const random = this.#random;
    const ids = [...this.#stage.members.keys()];
    const at = random.next();
    if (at < 0.1) return this.#note("roll", await this.#roll());
    const grows = ids.length <= membersMin || (ids.length < membersMax && random.next() < 0.5);
    const kind = at < 0.35 ? "replace" : grows ? "add" : "remove";
    const leaving = kind === "add" ? [] : [pick(ids, random)];
    const coming = kind === "remove" ? [] : [await this.#newcomer()];
    this.#note(kind, await this.#command("member", kind, ...leaving, ...coming, "--within", within));
    await this.#putInOrder();
  }

  /** Starts a member that listens but isn't part of the cluster yet, as the command requires. */
  async #newcomer(): Promise<string> {
    const { id, address, actor } = this.#stage.newMember();
    actor.start();
    while (!this.#stage.listens(id)) await sleep(20);
    return `${id}=${address}`;
  }

  /** Ends processes that are no longer members. */
  async #putInOrder(): Promise<void> {
    const status = await this.#view();
    for (const id of this.#stage.members.keys()) if (!(id in status.members)) await this.#stage.retire(id);
  }

  /** The view after the change in progress. */
  async #view(): Promise<ViewStatus> {
    for (;;) {
      const { code, out } = await this.#command("member", "list", "-o", "json");
      const status = code === 0 ? (JSON.parse(out) as ViewStatus) : undefined;
      // A member that was cut off may not know the newest view yet.
      if (status !== undefined && status.joint === undefined && status.number >= this.viewNumber) {
        this.viewNumber = status.number;
        this.#members = Object.keys(status.members);
        return status;
      }
      await sleep(250);
    }
  }

  /**
   * Rolls all members: the shell command given to `--with` asks for each restart by a file, and waits until
   * that file is gone.
   */
  async #roll(): Promise<{ code: number | null; err: string }> {
    const asked = (id: string): string => join(this.#folder, `restart-${id}`);
    const shell = `touch ${asked("{id}")}; while [ -e ${asked("{id}")} ]; do sleep 0.1; done`;
    const over = new AbortController();
    const rolling = this.#command("member", "roll", "--within", "30s", "--with", shell);
    void rolling.finally(() => over.abort());
    while (!over.signal.aborted) {
      for (const [id, actor] of this.#stage.members)
        if (existsSync(asked(id))) {
          await actor.kill();
          this.#stage.restart(actor);
          rmSync(asked(id));
        }
      await sleep(50);
    }
    return rolling;
  }

  async #handOver(): Promise<void> {
    const to = pick(this.#stage.holders, this.#random).name;
    this.#note("handover", await this.#command("handover", pick(resources, this.#random), to));
  }

  #note(kind: Change, { code, err }: { code: number | null; err: string }): void {
    if (code === 0) this.counts[kind].done += 1;
    else this.counts[kind].failed += 1;
    const last = err.trim().split("\n").at(-1) ?? "";
    if (code !== 0)
      this.reasons.add(`${kind}: ${code ?? "given up"} ${last.replaceAll(/\d+(\.\d+)*/g, "N")}`);
  }

  #command(...words: string[]): Promise<{ code: number | null; out: string; err: string }> {
    const endpoints = this.#stage.endpointsOf(this.#members).join();
    const asked = [...words, "--endpoints", endpoints, "--cluster", "blackbox-members"];
    const command = commandOf(this.#build, memberProgram(this.#build), asked);
    const child = spawn(process.execPath, command.words, {
      env: { ...process.env, ...command.env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: commandMsMax,
      killSignal: "SIGKILL",
    });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, out, err }));
    });
  }
}
