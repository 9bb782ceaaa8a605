import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { minifySync, parseSync } from "rolldown/utils";

/** Shrinks all code below a folder, and indents its declarations with tabs. */
export function shrinkFolder(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = join(folder, name);
    if (name.endsWith(".js")) writeFileSync(path, shrink(name, readFileSync(path, "utf8")));
    if (name.endsWith(".d.ts")) writeFileSync(path, withTabs(readFileSync(path, "utf8")));
  }
}

/**
 * Removes white space and shortens the names of local variables. Functions and classes keep their names, and
 * each statement has a line of its own. So a stack trace shows the file, the function and the line, and for
 * an uncaught error Node does not print the whole file.
 */
export function shrink(name, code) {
  const module = /^(?:import|export)\b/m.test(code);
  const options = { compress: false, mangle: { keepNames: true }, codegen: { removeWhitespace: true } };
  const { code: shrunk, errors } = minifySync(name, code, { module, ...options });
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`);
  return withLines(shrunk, parseSync(name, shrunk, { sourceType: module ? "module" : "commonjs" }).program);
}

/** A line break is possible after these, where a statement or a class member begins. */
const statementEnds = new Set([";", "{", "}", ":"]);

function withLines(code, program) {
  const starts = startsIn(program)
    .filter((start) => statementEnds.has(code[start - 1]))
    .sort((a, b) => a - b);
  return [0, ...starts].map((start, index) => code.slice(start, starts[index])).join("\n");
}

/** The offsets at which statements and class members begin. */
function startsIn(node) {
  if (node === null || typeof node !== "object") return [];
  return Object.entries(node).flatMap(([key, value]) => {
    if (!Array.isArray(value)) return startsIn(value);
    const own = key === "body" || key === "consequent" ? value.map(({ start }) => start) : [];
    return [...own, ...value.flatMap(startsIn)];
  });
}

const withTabs = (text) =>
  text.replaceAll(/^(?: {4})+/gm, (indentation) => "\t".repeat(indentation.length / 4));
