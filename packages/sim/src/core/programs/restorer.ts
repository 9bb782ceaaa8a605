import { snapshotPieces } from "@leasehold/core/inner/state/snapshot.js";
import { SimRandom } from "../../kit/random.js";
import { checkBackup, checkRestored } from "../checkers/restored.js";
import { forcedCore, type NewCore, restoredCore, type TakenBackup } from "../world/cores.js";
import type { SimServer } from "../world/server.js";
import type { CoreWorld } from "../world/world.js";

/** Its own random stream, so that the other draws of a run stay the same. */
const restorerStream = 2 ** 48;

/** How long a new core has faults before the run becomes calm. */
const lastMs = 8_000;
const backupEveryMsDefault = 3_000;

/** The pieces that a client reads at a time. */
const piecesAtOnce = 16;

/** How long a former server may take to come back. */
const backMsMax = 4_000;

/**
 * Takes backups of running servers. Then all servers are lost, and a new core begins with the last backup or
 * with one server's disk. The former servers return and contact the new ones.
 */
export class Restorer {
  readonly #world: CoreWorld;
  readonly #random: SimRandom;
  #left: number;
  #backup: TakenBackup | undefined;
  /** The number of the core in the backup. */
  #cores = 0;

  constructor(world: CoreWorld) {
    this.#world = world;
    this.#random = new SimRandom(world.plan.seed + restorerStream);
    this.#left = world.plan.restores ?? 0;
  }

  begin(): void {
    const { cores, plan } = this.#world;
    this.#backup = undefined;
    this.#cores = cores;
    this.#soon();
    if (this.#left === 0) return;
    this.#left -= 1;
    this.#world.after(this.#random.between(2_000, plan.stableFromMs / 2), () => this.#lose());
  }

  get #isLate(): boolean {
    return this.#world.nowMs > this.#world.plan.stableFromMs - lastMs;
  }

  // Backups

  #soon(): void {
    const { cores, plan } = this.#world;
    const { backupEveryMs = backupEveryMsDefault } = plan;
    this.#world.after(this.#random.exponential(backupEveryMs), () => {
      if (!this.#isLate && cores === this.#world.cores) this.#ask();
    });
  }

  #ask(): void {
    const server = this.#random.pick(this.#world.servers);
    const { life } = server;
    this.#world.call(server, { kind: "freeze", request: {} }, (outcome) => {
      if (outcome === "lost" || !("source" in outcome)) {
        this.#soon();
        return;
      }
      const { snapshotPieceBytes } = this.#world.plan.limits;
      const pieces = snapshotPieces(outcome.source, snapshotPieceBytes);
      this.#read({ server, life, index: outcome.meta.index, pieces, taken: [] });
    });
  }

  /** Reads in parts, as a stream, while the server keeps running. */
  #read(reading: Reading): void {
    const { index, life, pieces, server, taken } = reading;
    if (!server.isUp || server.life !== life) {
      this.#soon();
      return;
    }
    for (let count = 0; count < piecesAtOnce; count += 1) {
      const next = pieces.next();
      if (next.done === true) {
        this.#taken(server, { index, pieces: taken });
        return;
      }
      taken.push(next.value);
    }
    const { latencyMs } = this.#world.plan;
    this.#world.after(this.#random.exponential(latencyMs), () => this.#read(reading));
  }

  #taken(server: SimServer, backup: TakenBackup): void {
    this.#soon();
    if (this.#cores !== this.#world.cores) return;
    this.#world.log(`a backup of ${server.id} at ${backup.index}`);
    this.#world.counters.backups += 1;
    this.#backup = backup;
    const { reference, report } = this.#world;
    checkBackup(backup, reference, report);
  }

  // The successor

  /** Mostly uses the backup, if there is one. */
  #lose(): void {
    if (this.#isLate) return;
    if (this.#backup === undefined || this.#random.chance(0.3)) this.#force();
    else this.#restore(this.#backup);
  }

  #restore(backup: TakenBackup): void {
    const { counters, plan, reference, report } = this.#world;
    const count = this.#random.pick([1, 3, 3, 5]);
    counters.restores += 1;
    this.#begin(restoredCore(count, backup, reference, report, plan.limits.snapshotPieceBytes));
  }

  #force(): void {
    const { counters, reference, report } = this.#world;
    const fit = this.#world.members().filter(({ disk }) => disk.recovered.snapshot.index > 0);
    const server = this.#random.pick(fit);
    // Its pending write is lost, or a part of it.
    this.#world.crash(server);
    counters.forcedCores += 1;
    const cluster = BigInt(1 + Math.floor(this.#random.next() * 1e9));
    this.#begin(forcedCore(server, cluster, reference, report));
  }

  #begin(core: NewCore): void {
    const { keptRevision, servers } = core;
    const text = servers.map(({ id }) => id).join(", ");
    this.#world.log(`all is lost; a new core of ${text} begins with revision ${keptRevision}`);
    this.#world.replace(core);
    checkRestored(core, this.#world.report);
    for (const server of this.#world.servers) this.#startSoon(server);
    for (const server of this.#world.former) if (this.#random.chance(0.8)) this.#startSoon(server);
    this.begin();
  }

  #startSoon(server: SimServer): void {
    this.#world.after(this.#random.between(0, backMsMax), () => {
      if (!server.isUp) this.#world.start(server);
    });
  }
}

interface Reading {
  readonly server: SimServer;
  readonly life: number;
  readonly index: number;
  readonly pieces: Iterator<Uint8Array>;
  readonly taken: Uint8Array[];
}
