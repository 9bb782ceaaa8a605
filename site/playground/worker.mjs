// Two programs of the playground, each as if in a process of its own: leases, timers and a switch that freezes them. They
// share one ground in memory, and a store that checks tokens.
import { LeaseholdError } from "../../packages/leasehold/dist/lease/errors.js";
import { LeaseManager } from "../../packages/leasehold/dist/lease/manager/lease-manager.js";
import { MemoryGround } from "../../packages/leasehold/dist/testing/memory-ground.js";
import { MemoryProvider } from "../../packages/leasehold/dist/testing/memory-provider.js";
import { ProcessSwitch } from "../../packages/leasehold/dist/testing/process-switch.js";

const ttlMs = 5_000;
const writeMs = 700;
const reports = 20;
const linesMax = 100;

const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };
const random = { next: () => Math.random() };
const timers = {
  after(delayMs, run) {
    const id = setTimeout(run, Math.ceil(delayMs));
    return { cancel: () => clearTimeout(id) };
  },
};

const ground = new MemoryGround();
let greatestToken = 0n;

class Program {
  #process = new ProcessSwitch();
  #opened = new Set();
  #leases = new Set();
  #waitsFor = 0;
  #isFrozen = false;
  #isRunning = false;
  #lines = [];

  constructor(name) {
    this.name = name;
  }

  get state() {
    for (const lease of this.#leases) if (lease.remaining() === 0) this.#leases.delete(lease);
    const lease = [...this.#leases].at(-1);
    const lines = this.#lines;
    this.#lines = [];
    return {
      name: this.name,
      isRunning: this.#isRunning,
      isFrozen: this.#isFrozen,
      isWaiting: this.#waitsFor > 0,
      token: lease && String(lease.token),
      remainingMs: lease?.remaining() ?? 0,
      share: (lease?.remaining() ?? 0) / ttlMs,
      lines,
    };
  }

  print = (...words) => {
    if (this.#lines.length < linesMax) this.#lines.push(words.map(String).join(" "));
  };

  sleep = (delayMs) =>
    new Promise((resolve) => {
      this.#process.timers(timers).after(delayMs, resolve);
    });

  open = () => {
    const world = { clock, random, timers: this.#process.timers(timers) };
    const provider = new MemoryProvider(ground, world, {
      name: this.name,
      ttlMaxMs: ttlMs,
      process: this.#process,
    });
    const leases = new LeaseManager(provider, world);
    for (const name of ["acquire", "tryAcquire"]) {
      const call = leases[name].bind(leases);
      leases[name] = async (...words) => {
        this.#waitsFor++;
        try {
          const lease = await call(...words);
          if (lease !== undefined) this.#took(lease);
          return lease;
        } finally {
          this.#waitsFor--;
        }
      };
    }
    this.#opened.add(leases);
    return Promise.resolve(leases);
  };

  #took(lease) {
    this.#leases.add(lease);
    this.print(`holds ${lease.resource} with token ${lease.token}`);
  }

  write = async (report, { token }) => {
    await this.sleep(writeMs);
    if (token < greatestToken) {
      this.print(`the store refused ${report}: token ${token} is below ${greatestToken}`);
      throw new Error("the store refused an old token");
    }
    greatestToken = token;
    this.print(`wrote ${report} with token ${token}`);
  };

  reportsToWrite = () => Array.from({ length: reports }, (_, at) => `report ${at + 1}`);

  async run(code) {
    await this.stop();
    const given = {
      leasehold: { open: this.open, LeaseholdError },
      reportsToWrite: this.reportsToWrite,
      write: this.write,
      sleep: this.sleep,
      console: { log: this.print, error: this.print },
    };
    // On one line, so that errors name the reader's lines.
    const body = code.replace(
      /^import\s*(\{[^}]*\})\s*from\s*["']leasehold["'];?/gm,
      (_, names) => `const ${names.replaceAll(" as ", ": ")} = leasehold;`,
    );
    // A script of its own, not `eval`: the frame's policy allows scripts of `blob:` only.
    const script = `self.program = async ({ ${Object.keys(given).join(", ")} }) => { ${body}\n};`;
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.#isRunning = true;
    try {
      importScripts(address);
      await self.program(given);
      this.print("done");
    } catch (error) {
      this.print(error?.code ? `${error.code}: ${error.message}` : String(error));
    } finally {
      URL.revokeObjectURL(address);
      this.#isRunning = false;
    }
  }

  freeze(isFrozen) {
    this.#isFrozen = isFrozen;
    if (isFrozen) this.#process.pause();
    else this.#process.resume();
    this.print(isFrozen ? "frozen" : "goes on");
  }

  async stop() {
    if (this.#isFrozen) this.freeze(false);
    const opened = [...this.#opened];
    this.#opened.clear();
    await Promise.all(opened.map((leases) => leases.close()));
  }
}

const programs = { A: new Program("A"), B: new Program("B") };

onmessage = ({ data: { name, run, freeze, stop } }) => {
  const program = programs[name];
  if (run !== undefined) void program.run(run);
  if (freeze !== undefined) program.freeze(freeze);
  if (stop !== undefined) void program.stop();
};
setInterval(() => postMessage(Object.values(programs).map(({ state }) => state)), 100);
