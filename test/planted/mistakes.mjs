/**
 * The known mistakes. They are in files next to the code that they break: those of `acceptor.ts` in
 * `acceptor.mistakes`.
 *
 *     noFloor: P4, F1: no floor at the rejoin. Two holders.
 *       drop this.#floor = Math.max(this.#floor, floor);
 *
 *     releaseByAnybody: P11: any participant may release. Two holders.
 *       in #release
 *       never entry.leaseOwner !== request.owner
 *       caught by acceptor.test.ts /releases/ 100 seeds
 *
 * A line at the margin has the mistake's name and a description. `drop` removes a statement, or an operand
 * of `&&`, `||` or `??`; `never` makes a condition false, `always` makes it true. Any other edit is written
 * as a diff: `-` before removed lines, `+` before added lines, two spaces before statements that stay. Code
 * is compared by its syntax (`pattern.mjs`) and must occur in the file exactly once, or exactly once in the
 * function that `in` names. `also NAME` is one part of a mistake; its other part, with the description, is
 * next to another file. `caught by` is the test that has to fail with the mistake; `servers` means that the
 * mistake has to be in the processes that the test starts. A mistake without `caught by` is named in a table
 * in this folder, or by a test that turns its switch.
 *
 * @typedef {object} Edit
 * @property {string} file below the root
 * @property {string} [inside] a function of the file
 * @property {"drop" | "never" | "always" | "replace"} kind
 * @property {string} find code
 * @property {string} [replace] the mistake, for `replace`
 *
 * @typedef {object} Mistake
 * @property {string} name the switch
 * @property {string} why what is wrong with it
 * @property {Edit[]} edits
 * @property {{ file: string, test?: RegExp, seeds?: number, servers?: boolean }} [caughtBy]
 */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** @returns {string[]} */
function filesOfMistakes() {
  return readdirSync(join(root, "packages")).flatMap((name) =>
    readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".mistakes"))
      .sort()
      .map((path) => join("packages", name, "src", path)),
  );
}

/**
 * The mistakes of a file, one in each paragraph.
 *
 * @param {string} text
 * @param {string} path of the file below the root
 * @returns {Mistake[]}
 */
export function mistakesIn(text, path) {
  return text
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.split("\n").filter((line) => line !== "" && !line.startsWith("//")))
    .filter((lines) => lines.length > 0)
    .map((lines) => mistakeOf(lines, path));
}

/** @param {string[]} lines @param {string} path @returns {Mistake} */
function mistakeOf(lines, path) {
  const said = lines.filter((line) => !line.startsWith(" ")).join(" ");
  const [, also, named, why = ""] = /^(?:also (\w+)|(\w+): (.+))$/.exec(said) ?? refused(path, said);
  /** @type {Mistake} */
  const mistake = { name: also ?? named ?? "", why, edits: [] };
  const file = path.replace(/\.mistakes$/, ".ts");
  /** @type {string | undefined} */
  let inside;
  /** The edit that takes the lines of a diff. @type {Edit | undefined} */
  let open;
  for (const line of lines.filter((each) => each.startsWith(" "))) {
    const [, word = "", rest = ""] =
      /^ {2}(\+|-| (?= )|in|drop|never|always|caught by) (.*)$/.exec(line) ?? refused(path, line);
    const code = rest.trim();
    if (word === "in") inside = code;
    else if (word === "caught by") mistake.caughtBy = catcherOf(code, path);
    else if (word === "drop" || word === "never" || word === "always")
      mistake.edits.push({ file, inside, kind: word, find: code });
    else {
      const begins = open === undefined || open !== mistake.edits.at(-1) || (word !== "+" && open.isComplete);
      if (begins) mistake.edits.push((open = { file, inside, kind: "replace", find: "", replace: "" }));
      if (word !== "+") open.find += `${code}\n`;
      if (word !== "-") open.replace += `${code}\n`;
      if (word === "+") open.isComplete = true;
    }
  }
  return mistake;
}

/** @param {string} text @param {string} path @returns {NonNullable<Mistake["caughtBy"]>} */
function catcherOf(text, path) {
  const [, file = "", test, seeds, servers] =
    /^(\S+\.test\.ts)(?: \/(.+)\/)?(?: (\d+) seeds)?( servers)?$/.exec(text) ?? refused(path, text);
  return {
    file: file.includes("/") ? file : join(dirname(path), file),
    ...(test === undefined ? {} : { test: new RegExp(test) }),
    ...(seeds === undefined ? {} : { seeds: Number(seeds) }),
    ...(servers === undefined ? {} : { servers: true }),
  };
}

/** @returns {never} */
function refused(path, text) {
  throw new Error(`${path}: this is not a part of a mistake: ${text}`);
}

/** Merges the parts of one mistake that are in several files. */
function together(/** @type {Mistake[]} */ parts) {
  /** @type {Map<string, Mistake>} */
  const whole = new Map();
  for (const part of parts) {
    const known = whole.get(part.name);
    if (known === undefined) {
      whole.set(part.name, part);
      continue;
    }
    if (known.why !== "" && part.why !== "") throw new Error(`two mistakes are called ${part.name}`);
    known.why ||= part.why;
    known.caughtBy ??= part.caughtBy;
    known.edits.push(...part.edits);
  }
  const unknown = [...whole.values()].find(({ why }) => why === "");
  if (unknown !== undefined) throw new Error(`no file describes the mistake ${unknown.name}`);
  return [...whole.values()];
}

/** All planted mistakes, whichever test catches them. */
export const mistakes = together(
  filesOfMistakes().flatMap((path) => mistakesIn(readFileSync(join(root, path), "utf8"), path)),
);
