// A running system: its three servers, and its client in a process of its own.
import { fork } from "node:child_process";
import { on } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { usageOf } from "./room.mjs";
import { load } from "./systems/index.mjs";

const script = fileURLToPath(new URL("client.mjs", import.meta.url));

/** Longer than any single measurement. */
const answersWithinMs = 60_000;

export class Running {
  #module;
  #started;
  #child;
  /** The client's answers, in order. */
  #answers;
  /** The optional operations of the client. */
  abilities = [];

  static async start({ module, way }, room) {
    const running = new Running();
    running.#module = module;
    const { start } = await load(module);
    running.#started = await start(room, way);
    await running.connect();
    return running;
  }

  get servers() {
    return this.#started.servers;
  }

  /** Starts the client's process, replacing one that may still be running. */
  async connect() {
    this.#child?.kill("SIGKILL");
    const args = [this.#module, JSON.stringify(this.#started.connection)];
    this.#child = fork(script, args, { execArgv: ["--expose-gc"] });
    // Ignored: the end of the process also ends its answers.
    this.#child.on("error", () => {});
    this.#answers = on(this.#child, "message", { close: ["exit"] });
    this.abilities = (await this.#answer()).value;
  }

  async #answer() {
    const answer = this.#answers.next();
    const next = await Promise.race([answer, sleep(answersWithinMs, undefined, { ref: false })]);
    if (next === undefined) throw new Error(`no answer within ${answersWithinMs / 1_000} s`);
    if (next.done) throw new Error("the client's process ended");
    const [message] = next.value;
    if (message.error !== undefined) throw new Error(message.error);
    return message;
  }

  /** Has the client measure. `cpuUs` is the CPU time of its process and all servers meanwhile. */
  async measure(call, argument = {}) {
    const before = this.#serversCpuUs();
    this.#child.send({ call, argument });
    await this.#answer();
    const serversCpuUs = this.#serversCpuUs() - before;
    const { value } = await this.#answer();
    return { ...value, serversCpuUs };
  }

  #serversCpuUs() {
    return this.servers.reduce((sum, { pid }) => sum + usageOf(pid).cpuUs, 0);
  }

  /** Resident memory of a server, the median of three, in bytes. */
  residentBytes() {
    return this.servers.map(({ pid }) => usageOf(pid).residentBytes).toSorted((a, b) => a - b)[1];
  }

  /**
   * Heap of a server after a collection, the median of three, in bytes; undefined where it cannot be queried.
   */
  async heapBytes() {
    const heaps = await this.#started.heaps?.();
    return heaps?.toSorted((a, b) => a - b)[1];
  }

  /** Kills the leader, or another server if none leads, and notifies the client at once. */
  async killOne(round) {
    const { index } = await this.measure("leader");
    const server = this.servers[index ?? round % this.servers.length];
    return {
      server,
      kill: () => {
        server.kill();
        this.#child.send({ call: "killed" });
      },
      restart: () => server.restart(),
      which: index === undefined ? "any" : "the leader",
    };
  }

  stop() {
    this.#child?.kill("SIGKILL");
  }
}
