import { type Faults, noFaults, withFaults } from "../../planted/switches.js";
import { World } from "./world.js";

/*
 * A script has an explanation, its variants with the outcome that each must reach, and paragraphs of commands.
 * The output of a paragraph follows below `----`, once if all variants print the same. Times are milliseconds
 * since the start, when all acceptors are past their recovery wait. A ballot prints as `millisecond.counter`.
 * The resource is `r`. The commands:
 *
 *   variant NAME[: FAULT …] -> two holders | one holder | no holder
 *   cluster a b c [skew=10] [ttlMax=1000] [timeout=100] [rate=0.1]   members, ready at time 0
 *   proposers p q
 *   p acquire fast|two-phase [ttl=600]    also: p renew, release, cancel, tick (timeouts), crash, restart
 *   a crash | restart | discard | show
 *   a bar p                               p's lease is broken at a
 *   deliver p.acq1 a b                    p's first ACQ reaches a and b (without names: everybody)
 *   return p.acq1 a b                     the answers of a and b reach p; repeated: a second time
 *   exchange p.acq1 a b                   both
 *   drop p.acq1 c
 *   advance 100 [p=80]                    time passes; p's clocks move by 80
 *   clock p +10                           p's wall clock is 10 ahead
 *   suspend p 100                         p's machine sleeps: its steady clock stands still
 *   p use                                 p's program writes to the guarded resource, with its token
 *   newcomer d                            starts a process that isn't a member yet
 *   a change a b d                        a begins a change to these members
 *   a tell b p                            a's view reaches b and p (without names: everybody)
 */

/**
 * The outcome of a run: whether two ever held the resource at one instant, and if not, how many hold it at
 * the end.
 */
export type Outcome = "two holders" | "one holder" | "no holder";

/** One way to run a script: without some repairs, or with the protocol as written. */
export interface Variant {
  readonly name: string;
  readonly faults: readonly string[];
  readonly expected: Outcome;
}

/** Lines between two empty lines: comments, then commands, then (below `----`) their output. */
interface Paragraph {
  readonly comments: readonly string[];
  readonly commands: readonly string[];
}

export interface Script {
  readonly variants: readonly Variant[];
  readonly paragraphs: readonly Paragraph[];
}

/**
 * A fault of the script's world instead of the protocol: a restarted proposer comes back under its old name
 * (F13).
 */
const worldFault = "sameIncarnation";

const variantPattern = /^variant ([^:]+?)(?:: ([\w ]+?))? -> (two holders|one holder|no holder)$/;

export function parseScript(text: string): Script {
  const variants: Variant[] = [];
  const paragraphs: Paragraph[] = [];
  for (const part of text.trim().split(/\n\s*\n/)) {
    const lines = part.split("\n");
    const end = lines.findIndex((line) => line.startsWith("----"));
    const input = end === -1 ? lines : lines.slice(0, end);
    const [comments, commands]: [string[], string[]] = [[], []];
    for (const line of input) {
      const variant = variantPattern.exec(line);
      if (variant !== null) {
        const faults = variant[2]?.split(" ") ?? [];
        variants.push({ name: variant[1]!, faults, expected: variant[3] as Outcome });
      }
      (line.startsWith("#") || variant !== null ? comments : commands).push(line);
    }
    paragraphs.push({ comments, commands });
  }
  return { variants, paragraphs };
}

export interface Run {
  readonly outcome: Outcome;
  /** The output of each paragraph. */
  readonly outputs: readonly string[];
}

export function runScript(script: Script, variant: Variant): Run {
  const planted: Partial<Faults> = {};
  for (const fault of variant.faults) {
    if (fault in noFaults) planted[fault as keyof Faults] = true;
    else if (fault !== worldFault) throw new Error(`no such fault: ${fault}`);
  }
  return withFaults(planted, () => {
    const interpreter = new Interpreter(variant.faults.includes(worldFault));
    const outputs = script.paragraphs.map(({ commands }) =>
      commands.flatMap((command) => interpreter.run(command)).join("\n"),
    );
    return { outcome: interpreter.outcome(), outputs };
  });
}

/**
 * The script with the output of its variants: once where they agree, otherwise under the names of the
 * variants.
 */
export function formatScript(script: Script, runs: readonly Run[]): string {
  const parts = script.paragraphs.map(({ comments, commands }, index) => {
    if (commands.length === 0) return comments.join("\n");
    const namesByOutput = new Map<string, string[]>();
    for (const [number, run] of runs.entries()) {
      const output = run.outputs[index]!;
      namesByOutput.set(output, [...(namesByOutput.get(output) ?? []), script.variants[number]!.name]);
    }
    const blocks = [...namesByOutput].map(([output, names]) => {
      const title = namesByOutput.size === 1 ? "----" : `---- ${names.join(", ")}`;
      return `${title}\n${output === "" ? "ok" : output}`;
    });
    return [...comments, ...commands, ...blocks].join("\n");
  });
  return `${parts.join("\n\n")}\n`;
}

/** Commands in which no variant found anything to deliver: mistakes in the script. */
export function idleCommands(runs: readonly Run[]): string[] {
  const idle = runs.map((run) => new Set(run.outputs.join("\n").match(/\(there is no [^)]+\)/g) ?? []));
  return [...(idle[0] ?? [])].filter((line) => idle.every((lines) => lines.has(line)));
}

/** Carries out the lines of a script in a {@link World}. */
class Interpreter {
  readonly #sameIncarnation: boolean;
  #world: World | undefined;

  constructor(sameIncarnation: boolean) {
    this.#sameIncarnation = sameIncarnation;
  }

  run(command: string): string[] {
    const words = command.trim().split(/\s+/);
    if (words[0] === "cluster") {
      const names = words.slice(1).filter((word) => !word.includes("="));
      this.#world = new World(names, optionsOf(words), this.#sameIncarnation);
    } else {
      this.#perform(this.#started(), words);
    }
    this.#started().checkHolders();
    return this.#started().takeOutput();
  }

  outcome(): Outcome {
    const world = this.#started();
    if (world.holdersMax > 1) return "two holders";
    return world.checkHolders() === "none" ? "no holder" : "one holder";
  }

  #perform(world: World, words: readonly string[]): void {
    const [verb = "", object = "", ...rest] = words;
    if (verb === "proposers") world.addProposers(words.slice(1));
    else if (verb === "newcomer") world.addNewcomer(object);
    else if (verb === "advance") world.advance(Number(object), new Map(Object.entries(optionsOf(rest))));
    else if (verb === "clock") world.setWall(object, Number(rest[0]));
    else if (verb === "suspend") world.suspend(object, Number(rest[0]));
    else if (verb === "deliver") world.deliver(object, rest);
    else if (verb === "return") world.return(object, rest);
    else if (verb === "drop") world.drop(object, rest);
    else if (verb === "exchange") {
      if (world.deliver(object, rest)) world.return(object, rest);
    } else this.#order(world, verb, object, rest);
  }

  /** Commands for one participant, which begin with its name. */
  #order(world: World, name: string, verb: string, rest: readonly string[]): void {
    if (verb === "crash") world.crash(name);
    else if (verb === "restart") world.restart(name);
    else if (verb === "discard") world.discard(name);
    else if (verb === "show") world.show(name);
    else if (verb === "bar") world.bar(name, rest[0] ?? "");
    else if (verb === "change") world.change(name, rest);
    else if (verb === "tell") world.tell(name, rest);
    else if (verb === "use") world.use(name);
    else if (verb === "acquire") world.act(name, rest[0] ?? "", optionsOf(rest));
    else world.act(name, verb, optionsOf(rest));
  }

  #started(): World {
    if (this.#world === undefined) throw new Error("a script begins with its cluster");
    return this.#world;
  }
}

/** Parses words such as `ttl=450`. */
function optionsOf(words: readonly string[]): Record<string, number> {
  const options: Record<string, number> = {};
  for (const word of words) {
    const [name, value] = word.split("=");
    if (name === undefined || value === undefined) continue;
    if (!Number.isFinite(Number(value))) throw new Error(`not a number: ${word}`);
    options[name] = Number(value);
  }
  return options;
}
