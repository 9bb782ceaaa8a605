/**
 * No file of the product contains a mistake. A test build has both the right code and the wrong code, and
 * chooses by a switch (`switches.ts`), as in mutation testing with schemata (Untch, Offutt and Harrold,
 * 1993). So one build has all mistakes, and tests turn them on one by one.
 *
 * @typedef {import("./mistakes.mjs").Edit} Edit
 * @typedef {import("./mistakes.mjs").Mistake} Mistake
 * @typedef {{ start: number, end: number, isStatement: boolean }} Range
 * @typedef {Range & { wrong: string }} Change
 * @typedef {Range & { variants: [string, string][] }} Choice
 */
import { basename } from "node:path";
import { Code, parsedPattern, written } from "./pattern.mjs";

/**
 * The source with its mistakes behind switches. Several mistakes may be at one place, or one inside of
 * another.
 *
 * @param {string} source
 * @param {string} file
 * @param {readonly Mistake[]} mistakes
 * @returns {string}
 */
export function plant(source, file, mistakes) {
  const own = mistakes.flatMap(({ name, edits }) =>
    edits.filter((edit) => edit.file === file).map((edit) => ({ name, edit })),
  );
  if (own.length === 0) return source;
  const code = new Code(source, file);
  /** @type {Map<string, Choice>} */
  const choices = new Map();
  for (const { name, edit } of own) {
    const { wrong, ...place } = changeBy(edit, code, name);
    const key = `${place.start} ${place.end}`;
    if (!choices.has(key)) choices.set(key, { ...place, variants: [] });
    choices.get(key).variants.push([name, wrong]);
  }
  const inOrder = [...choices.values()].sort((a, b) => a.start - b.start || b.end - a.end);
  // On the first line, so that the line numbers stay the same.
  return `import { planted as plantedMistakes } from "#planted"; ${switched(source, 0, source.length, inOrder)}`;
}

/**
 * The source with one mistake in it, and no switch.
 *
 * @param {string} source
 * @param {readonly Edit[]} edits of one file
 * @param {string} name of the mistake
 */
export function made(source, edits, name) {
  const code = new Code(source, edits[0].file);
  return edits
    .map((edit) => changeBy(edit, code, name))
    .sort((a, b) => b.start - a.start)
    .reduce((text, { start, end, isStatement, wrong }) => {
      return `${text.slice(0, start)}${isStatement ? `{ ${wrong} }` : `(${wrong})`}${text.slice(end)}`;
    }, source);
}

/**
 * The change that an edit makes. The code that it names must occur exactly once, or the mistake would be at
 * another place than intended.
 *
 * @param {Edit} edit
 * @param {Code} code
 * @param {string} name of the mistake
 * @returns {Change}
 */
function changeBy({ file, inside, kind, find, replace = "" }, code, name) {
  const where = `${name} in ${basename(file, ".ts")}.mistakes`;
  const condition = kind === "replace" ? null : /^if \((.+)\)$/.exec(find);
  const places = code
    .placesOf(parsedPattern(condition?.[1] ?? find), inside)
    .filter(({ parent }) => condition === null || parent.type === "IfStatement");
  const [place] = places;
  if (place === undefined || places.length > 1) {
    const lines = places.map(({ start }) => code.source.slice(0, start).split("\n").length).join(", ");
    const here = inside === undefined ? file : `${inside} of ${file}`;
    if (place !== undefined)
      throw new Error(`${where}: this stands in lines ${lines}, and not once, in ${here}: ${find.trim()}`);
    const gone = namesGone(find, code.source);
    throw new Error(`${where}: this does not stand in ${here}${gone}: ${find.trim()}`);
  }
  const { start, end, isStatement } = place;
  if (kind === "never" || kind === "always") {
    if (isStatement) throw new Error(`${where}: not a condition: ${find}`);
    return { start, end, isStatement, wrong: String(kind === "always") };
  }
  if (kind === "replace")
    return { start, end, isStatement, wrong: written(replace, isStatement, place, code.source) };
  if (isStatement) return { start, end, isStatement, wrong: "" };
  const { parent } = place;
  if (parent.type !== "LogicalExpression")
    throw new Error(`${where}: neither a statement nor an operand: ${find}`);
  const other = parent.left.start <= start && end <= parent.left.end ? parent.right : parent.left;
  return {
    start: parent.start,
    end: parent.end,
    isStatement,
    wrong: code.source.slice(other.start, other.end),
  };
}

/**
 * The members and functions that a pattern names and the file no longer has: a hint for adapting the pattern.
 */
function namesGone(/** @type {string} */ find, /** @type {string} */ source) {
  const words = find.match(/(?<=\.)#?[a-z]\w+|\b[a-z]\w+(?=\()/gi) ?? [];
  const gone = [...new Set(words)].filter((word) => !new RegExp(`(?<!\\w)${word}\\b`).test(source));
  return gone.length === 0 ? "" : `, where nothing is called ${gone.join(", ")}`;
}

/** @param {string} source @param {number} from @param {number} to @param {Choice[]} choices outer ones first */
function switched(source, from, to, choices) {
  const [first, ...others] = choices;
  if (first === undefined) return source.slice(from, to);
  const inside = others.filter(({ start }) => start < first.end);
  const cut = inside.find(({ end }) => end > first.end);
  if (cut !== undefined) throw new Error(`two mistakes overlap: ${source.slice(first.start, cut.end)}`);
  const right = switched(source, first.start, first.end, inside);
  const after = switched(source, first.end, to, others.slice(inside.length));
  return source.slice(from, first.start) + choice(right, first) + after;
}

/** @param {string} right @param {Choice} choice */
function choice(right, { isStatement, variants }) {
  const ask = (/** @type {string} */ name) => `plantedMistakes.${name}`;
  if (isStatement)
    return `${variants.map(([name, wrong]) => `if (${ask(name)}) { ${wrong} } else `).join("")}{ ${right} }`;
  return `(${variants.map(([name, wrong]) => `${ask(name)} ? (${wrong}) : `).join("")}(${right}))`;
}
