/**
 * A mistake is text that takes the place of other text, and stands in no file of the product. A test build has both: where the text
 * differs it asks a switch (`switches.ts`), as in mutation testing with schemata (Untch, Offutt and Harrold, 1993), so that one
 * build has all mistakes and a test turns them one by one.
 *
 * @typedef {object} Edit
 * @property {string} file below the root
 * @property {string} [at] text that stands once in the file, and `find` in it; without it `find` stands once in the file
 * @property {string} find an expression, or whole statements, but no declarations: they end with `;`, or with the `}` of a block
 * @property {string} replace the mistake: an expression in the place of an expression, statements in the place of statements
 *
 * @typedef {object} Mistake
 * @property {string} name the switch
 * @property {string} why what is wrong with it
 * @property {readonly Edit[]} edits
 * @property {{ file: string, test?: RegExp, seeds?: number, servers?: boolean }} [caughtBy] the tests that have to fail
 * with it, or one of them, on so many seeds (`scripts/planted-tests.mjs`; with `servers`, the mistake is in the
 * processes that they start: `scripts/planted-servers.mjs`); other mistakes are named by a table beside this file, or by a
 * test that turns the switch
 */

/**
 * The source with its mistakes behind switches. Two mistakes may be made in the same place, but not in places that overlap.
 *
 * @param {string} source
 * @param {string} file
 * @param {readonly Mistake[]} mistakes
 * @returns {string}
 */
export function plant(source, file, mistakes) {
  /** @type {Map<number, { end: number, variants: [string, string][] }>} */
  const places = new Map();
  for (const { name, edits } of mistakes)
    for (const { find, replace, at = find } of edits.filter((edit) => edit.file === file)) {
      const begin = placeOf(source, at, 0, source.length, `${name}: ${file}`);
      const start = placeOf(source, find, begin, begin + at.length, `${name}: ${file}`);
      const place = places.get(start) ?? { end: start + find.length, variants: [] };
      if (place.end !== start + find.length)
        throw new Error(`${name}: ${file}: overlaps another mistake: ${find}`);
      place.variants.push([name, replace]);
      places.set(start, place);
    }
  if (places.size === 0) return source;
  let planted = "";
  let done = 0;
  for (const [start, { end, variants }] of [...places].sort(([a], [b]) => a - b)) {
    if (start < done) throw new Error(`${file}: two mistakes overlap: ${source.slice(start, end)}`);
    planted += source.slice(done, start) + switched(source.slice(start, end), variants);
    done = end;
  }
  // On the first line, so that the lines keep their numbers.
  return `import { planted as plantedMistakes } from "#planted"; ${planted}${source.slice(done)}`;
}

/** Where the text stands between two places: exactly once, or the mistake would be somewhere else than it says. */
function placeOf(source, text, from, to, where) {
  const first = source.indexOf(text, from);
  const isThere = first !== -1 && first + text.length <= to;
  const again = isThere ? source.indexOf(text, first + 1) : -1;
  if (!isThere || (again !== -1 && again + text.length <= to))
    throw new Error(`${where}: this does not stand exactly once: ${text}`);
  return first;
}

/** @param {string} right @param {[string, string][]} variants */
function switched(right, variants) {
  const isStatement = /;$|^[^{].*\}$/s.test(right);
  const ask = (name) => `plantedMistakes.${name}`;
  if (isStatement)
    return `${variants.map(([name, wrong]) => `if (${ask(name)}) { ${wrong} } else `).join("")}{ ${right} }`;
  return `(${variants.map(([name, wrong]) => `${ask(name)} ? (${wrong}) : `).join("")}(${right}))`;
}
