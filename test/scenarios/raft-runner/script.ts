import { founding, joining } from "../../../packages/core/src/raft/options.js";
import type { RaftLimits, Recovered } from "../../../packages/core/src/raft/api.js";
import type { ConfigChange, MemberId, Persist, Ready } from "../../../packages/core/src/raft/types.js";
import { printTrace } from "../golden.js";
import { disk, log } from "./lab.js";
import { printEntries, printMembership, printMessage, printPersist, printReady } from "./print.js";
import { bytesOf, Server } from "./server.js";
import type { Envelope, Observer } from "./server.js";

/** Runs a trace and returns the file with the output filled in. */
export async function runScript(text: string): Promise<string> {
  const world = new ScriptWorld();
  return printTrace(text, (words) => world.run(words));
}

/** A cluster whose clocks, disks and network are moved by hand, and which records all events. */
class ScriptWorld implements Observer {
  readonly #servers = new Map<MemberId, Server>();
  #network: Envelope[] = [];
  readonly #cut = new Set<string>();
  #output: string[] = [];

  run([verb = "", ...rest]: readonly string[]): readonly string[] {
    this.#output = [];
    if (!this.#world(verb, rest)) this.#one(verb, rest);
    return this.#output;
  }

  /** Commands about more than one server. Returns false if `verb` isn't one of them. */
  #world(verb: string, rest: readonly string[]): boolean {
    if (verb === "servers") {
      const voters = rest.map(BigInt);
      for (const id of voters) this.#add(id, founding(voters));
    } else if (verb === "tick" && rest[0] === "*") {
      for (let tick = 0; tick < Number(rest[1] ?? 1); tick += 1)
        for (const server of this.#servers.values()) server.act((raft) => raft.tick());
    } else if (verb === "lead") {
      // An election is shown once, in `election.txt`; elsewhere it would only distract.
      this.run(["tick", "*", "10"]);
      this.run(["deliver"]);
      this.#output = [];
    } else if (verb === "deliver") this.#deliver(rest);
    else if (verb === "lose") this.#lose(rest);
    else if (verb === "cut") this.#part(rest.join(" "));
    else if (verb === "heal") this.#cut.clear();
    else if (verb === "status") this.#status();
    else return false;
    return true;
  }

  /** Commands for one server, whose number follows the verb. */
  #one(verb: string, [name = "", ...rest]: readonly string[]): void {
    const id = BigInt(name);
    const [word = ""] = rest;
    if (verb === "founder") this.#addFounder(id, rest);
    else if (verb === "join") this.#add(id, joining());
    else if (verb === "tick")
      for (let tick = 0; tick < Number(word || 1); tick += 1) this.#server(id).act((raft) => raft.tick());
    else if (verb === "propose") this.#ask(id, (raft) => raft.propose(rest.map(bytesOf)));
    else if (verb === "read") this.#ask(id, (raft) => raft.readIndex(Number(word)));
    else if (verb === "transfer") this.#ask(id, (raft) => raft.transferLeader(BigInt(word)));
    else if (verb === "change") {
      const change = { kind: word as ConfigChange["kind"], member: BigInt(rest[1] ?? 0) };
      this.#ask(id, (raft) => raft.proposeChange(change, new Uint8Array(0)));
    } else if (verb === "crash") this.#server(id).crash();
    else if (verb === "start") this.#server(id).start();
    else if (verb === "slow") this.#server(id).slowDisk = true;
    else if (verb === "write") this.#server(id).finishWrite();
    else if (verb === "compact") this.#server(id).compact(Number(word || 0));
    else throw new Error(`no such command: ${verb}`);
  }

  /** `founder 1 of=1,2,3 log=1,1,4 term=5 batch=100`: `log` has the terms of its entries, from index 2 on. */
  #addFounder(id: MemberId, words: readonly string[]): void {
    const option = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.split("=")[1];
    const voters = option("of")!.split(",").map(BigInt);
    const terms = option("log")?.split(",").map(Number) ?? [];
    const term = Number(option("term") ?? terms.at(-1) ?? 1);
    const limits = { appendBytesMax: Number(option("batch") ?? 1_000) };
    this.#add(id, disk(voters, log(...terms), { term }), limits);
  }

  #add(id: MemberId, recovered: Recovered, limits: Partial<RaftLimits> = {}): void {
    // Server 1 stands after 10 ticks, server 2 after 11, and so on.
    const random = { next: () => Number(id - 1n) / 5 };
    this.#servers.set(id, new Server({ id, recovered, random, limits, slowDisk: false, observer: this }));
  }

  #ask(
    id: MemberId,
    request: (raft: NonNullable<Server["raft"]>) => { accepted: boolean; reason?: string },
  ): void {
    const before = this.#output.length;
    const answer = this.#server(id).act(request);
    const line = answer?.accepted === true ? undefined : `${id}: refused, ${answer?.reason}`;
    if (line !== undefined) this.#output.splice(before, 0, line);
  }

  /** Delivers all messages in flight and all that follow; with a number, at most so many messages. */
  #deliver([limit]: readonly string[]): void {
    for (let count = 0; this.#network.length > 0 && count < Number(limit ?? 1_000); count += 1) {
      const envelope = this.#network.shift()!;
      const { from, to } = envelope.message;
      const receiver = this.#servers.get(to);
      const isLost = this.#cut.has(`${from}-${to}`) || receiver?.isUp !== true;
      this.#say(`${printMessage(envelope.message)}${isLost ? "   (lost)" : ""}`);
      if (!isLost) receiver.receive(envelope);
    }
  }

  /** Loses all messages in flight, or only those to the servers named. */
  #lose(to: readonly string[]): void {
    const isLost = ({ message }: Envelope) => to.length === 0 || to.includes(String(message.to));
    this.#network = this.#network.filter((envelope) => !isLost(envelope));
  }

  #part(text: string): void {
    const sides = text.split("|").map((side) => side.trim().split(/\s+/));
    for (const [index, side] of sides.entries())
      for (const other of sides.slice(index + 1))
        for (const one of side) for (const two of other) this.#cut.add(`${one}-${two}`).add(`${two}-${one}`);
  }

  #status(): void {
    for (const server of this.#servers.values()) {
      if (server.raft === undefined) {
        this.#say(`${server.id}: down`);
        continue;
      }
      const { role, term, commit, membership } = server.raft.status();
      const entries = server.log.length === 0 ? "no entries" : printEntries(server.log);
      this.#say(
        `${server.id}: ${role} in term ${term}, commit ${commit}, ${printMembership(membership)}; ${entries}`,
      );
    }
  }

  // Observer

  sent(envelope: Envelope): void {
    this.#network.push(envelope);
  }

  handedOut(server: Server, persist: Persist): void {
    this.#say(`${server.id}  writes ${printPersist(persist)}`);
  }

  ready(server: Server, ready: Ready): void {
    for (const line of printReady(ready)) this.#say(`${server.id}  ${line}`);
  }

  #server(id: MemberId): Server {
    const server = this.#servers.get(id);
    if (server === undefined) throw new Error(`no such server: ${id}`);
    return server;
  }

  #say(line: string): void {
    this.#output.push(line);
  }
}
