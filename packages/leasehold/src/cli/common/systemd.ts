/**
 * Notifies systemd of a server's state (`Type=notify`). Node cannot send to a datagram socket with a path, so
 * `systemd-notify` does. Because that is another process, the unit needs `NotifyAccess=all`. See
 * docs/decisions/0059-systemd-notify.md.
 */
import { execFile } from "node:child_process";
import type { Check } from "../../metrics/health.js";
import { isForked } from "./parent-process.js";

export interface ServerHealth {
  /** The checks of `/readyz`. systemd counts the server as started when all have passed once. */
  readonly checks: () => readonly Check[];
  /**
   * Whether `/livez` would answer 200. While it would not, systemd's watchdog is not notified. Default: true.
   */
  readonly isAlive?: () => boolean;
}

/** Every method returns at once, and does nothing without systemd. */
export interface ServiceManager {
  /** The server has begun to reread its settings; `reloaded` ends this. */
  reloading(): void;
  reloaded(): void;
  /** The server has begun to stop. Nothing is sent after it. */
  stopping(): void;
}

/** The interval at which the checks are run and changes are sent. */
const lookMs = 500;
/** The interval of watchdog notifications if the unit has no watchdog. */
const signMsDefault = 10_000;
/** The number of watchdog notifications within the watchdog's timeout. */
const signsPerTimeout = 3;
/** Timeout for one `systemd-notify`, which waits until systemd has read the message. */
const sendMsMax = 5_000;

const none: ServiceManager = {
  reloading: () => undefined,
  reloaded: () => undefined,
  stopping: () => undefined,
};

/** Starts to notify systemd, if this process is a service of type `notify`. */
export function notifySystemd(
  health: ServerHealth,
  // A forked server is part of its parent's service.
  env: NodeJS.ProcessEnv = isForked() ? {} : process.env,
): ServiceManager {
  return env["NOTIFY_SOCKET"] === undefined ? none : new Notifier(health, env);
}

/** The watchdog's timeout in ms; `undefined` if this process has no watchdog. */
function watchdogMsOf(env: NodeJS.ProcessEnv): number | undefined {
  const { WATCHDOG_USEC: micros, WATCHDOG_PID: pid } = env;
  const isOurs = pid === undefined || pid === String(process.pid);
  return isOurs && micros !== undefined && /^[1-9]\d*$/.test(micros) ? Number(micros) / 1_000 : undefined;
}

class Notifier implements ServiceManager {
  readonly #health: ServerHealth;
  readonly #env: NodeJS.ProcessEnv;
  readonly #signMs: number;
  readonly #looks: NodeJS.Timeout;
  #isStarted = false;
  #status = "";
  #signedAt = -Infinity;
  /** Fields of the next message. A later value of a name replaces an earlier one, so this is bounded. */
  #pending = new Map<string, string>();
  /** The pending message contains RELOADING, and READY follows in a separate message. */
  #isReloaded = false;
  #isSending = false;
  #isStopping = false;
  #hasWarned = false;

  constructor(health: ServerHealth, env: NodeJS.ProcessEnv) {
    const watchdogMs = watchdogMsOf(env);
    this.#health = health;
    this.#env = env;
    this.#signMs = watchdogMs === undefined ? signMsDefault : watchdogMs / signsPerTimeout;
    this.#looks = setInterval(() => this.#look(), Math.min(lookMs, this.#signMs));
    this.#looks.unref();
    this.#look();
  }

  reloading(): void {
    // systemd compares this with its own clock, which is also that of `hrtime`.
    this.#send({ RELOADING: "1", MONOTONIC_USEC: String(process.hrtime.bigint() / 1_000n) });
  }

  reloaded(): void {
    this.#send({ READY: "1" });
  }

  stopping(): void {
    if (this.#isStopping) return;
    clearInterval(this.#looks);
    this.#isStopping = true;
    // Sent at once, because this process may exit before the sender that is running now.
    this.#notify(["STOPPING=1", "STATUS=stopping"], () => undefined);
  }

  /** A blocked event loop runs no checks, and therefore does not notify the watchdog. */
  #look(): void {
    const failed = this.#health.checks().filter(({ isPassed }) => !isPassed);
    const status = failed.length === 0 ? "ready" : `not ready: ${failed.map(textOf).join("; ")}`;
    if (status !== this.#status) this.#send({ STATUS: (this.#status = status) });
    if (failed.length === 0 && !this.#isStarted) {
      this.#isStarted = true;
      this.#send({ READY: "1" });
    }
    const now = performance.now();
    if (now - this.#signedAt < this.#signMs || this.#health.isAlive?.() === false) return this.#flush();
    this.#signedAt = now;
    // systemd starts the watchdog only after READY. A start that waits for other servers may take any time,
    // as long as this server is alive.
    const micros = Math.ceil(this.#signMs * signsPerTimeout * 1_000);
    this.#send(this.#isStarted ? { WATCHDOG: "1" } : { EXTEND_TIMEOUT_USEC: String(micros) });
  }

  #send(fields: Readonly<Record<string, string>>): void {
    this.#add(Object.entries(fields));
    this.#flush();
  }

  #add(fields: Iterable<readonly [string, string]>): void {
    for (const [name, value] of fields) {
      if (name === "READY" && this.#pending.has("RELOADING")) {
        // systemd has to read the two messages one after the other.
        this.#isReloaded = true;
        continue;
      }
      this.#pending.set(name, value);
      if (name !== "RELOADING") continue;
      this.#pending.delete("READY");
      this.#isReloaded = false;
    }
  }

  /** Only one process sends at a time; later fields are collected for the next message. */
  #flush(): void {
    if (this.#isSending || this.#isStopping || this.#pending.size === 0) return;
    const sent = this.#pending;
    this.#pending = new Map(this.#isReloaded ? [["READY", "1"]] : []);
    this.#isReloaded = false;
    this.#isSending = true;
    const words = [...sent].map(([name, value]) => `${name}=${value}`);
    this.#notify(words, (error) => {
      this.#isSending = false;
      if (error === null) return this.#flush();
      this.#warn(error);
      // Losing READY would make the start fail, so the next check sends it again.
      const newer = this.#pending;
      this.#pending = sent;
      this.#add(newer);
    });
  }

  #notify(words: readonly string[], done: (error: Error | null) => void): void {
    try {
      execFile("systemd-notify", words, { timeout: sendMsMax, env: this.#env }, done);
    } catch (error) {
      // For example ENOMEM. Asynchronous, because the caller has to return first.
      setImmediate(() => done(error as Error));
    }
  }

  #warn({ message }: Error): void {
    if (!this.#hasWarned)
      process.stderr.write(`leasehold: warning: systemd was not notified: ${message.trim()}\n`);
    this.#hasWarned = true;
  }
}

/** One line of `systemctl status`. */
function textOf({ name, detail }: Check): string {
  return `${name}: ${detail}`.replaceAll(/\s+/g, " ");
}
