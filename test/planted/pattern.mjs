/**
 * Finds code by its syntax: line breaks, comments, parentheses, types, and braces around one statement do
 * not count. `$` stands for any expression, `$name` for the same expression wherever it occurs, and `...`
 * for all further arguments or elements.
 *
 * Coccinelle's semantic patches work in this way (Padioleau, Lawall, Hansen and Muller, 2008).
 */
import { parseSync } from "rolldown/utils";

/** @typedef {{ type: string, start: number, end: number, [key: string]: any }} Node */
/** @typedef {{ names: Map<string, string>, parts: Map<string, Node> }} Bound the code that a pattern's names and placeholders stand for */
/** @typedef {{ nodes: Node[], isStatement: boolean, text: string, offset: number }} Pattern */
/** @typedef {{ start: number, end: number, isStatement: boolean, parent: Node, bound: Bound }} Place */
/** @typedef {{ node: Node, around: Functions | undefined }} Functions a function, and the functions around it */
/** @typedef {{ node: Node, next: Node[], parent: Node, path: string, functions: Functions | undefined }} Standing */

/** Parts of a node that describe its position or type. */
const unseen = new Set(
  "start end range raw shorthand decorators typeAnnotation returnType typeArguments typeParameters".split(
    " ",
  ),
);
const wrappers = new Set(
  "ParenthesizedExpression TSNonNullExpression TSAsExpression TSSatisfiesExpression ChainExpression".split(
    " ",
  ),
);
const isNode = (value) => typeof value?.type === "string";
const isFunction = (/** @type {Node} */ { type }) => /^(?:Function|ArrowFunction)/.test(type);
const isPlaceholder = ({ type, name }) => type === "Identifier" && name.startsWith("$");

/** The node inside of parentheses, type assertions, and braces around one statement. */
function unwrapped(node) {
  if (wrappers.has(node.type)) return unwrapped(node.expression);
  if (node.type === "BlockStatement" && node.body.length === 1 && !node.body[0].type.endsWith("Declaration"))
    return unwrapped(node.body[0]);
  return node;
}

/** The statements of a pattern, or its one expression. Positions in the text are counted from `offset`. */
export function parsedPattern(code) {
  const text = code.replace(/\.\.\.(?=\s*[),\]}])/g, "...$");
  for (const [before, after] of [
    ["(", "\n)"],
    ["", "\n"],
  ]) {
    const head = `class Pattern { async *pattern() {\n${before}`;
    const { program, errors } = parseSync("pattern.ts", `${head}${text}${after}} }`);
    if (errors.length > 0) continue;
    const { body } = program.body[0].body.body[0].value.body;
    const isStatement = before === "";
    const nodes = isStatement ? body : [unwrapped(body[0].expression)];
    return { nodes, isStatement, text, offset: head.length };
  }
  throw new Error(`this is neither an expression nor statements: ${code}`);
}

const childrenOf = (node) =>
  Object.entries(node).flatMap(([key, value]) =>
    unseen.has(key) ? [] : [value].flat().flatMap((child) => (isNode(child) ? [{ key, child }] : [])),
  );

/** The name of a class or a function followed by a full stop; empty for other nodes. */
function nameOf(node) {
  const { name, type } = node.id ?? node.key ?? {};
  const isNamed =
    /^(?:Class|Function|MethodDefinition)/.test(node.type) || isFunction(node.init ?? node.value ?? node);
  return name === undefined || !isNamed ? "" : `${type === "PrivateIdentifier" ? "#" : ""}${name}.`;
}

/** True if an expression may replace this node: it is neither a declared name nor a key. */
function isExpression(node, parent, key) {
  if (/^(?:id|params|param|local|imported|exported|label)$/.test(key)) return false;
  if (key === "property" || key === "key") return parent.computed === true;
  if (parent.type === "Property" && key === "value") return parent.shorthand !== true;
  if (parent.type === "AssignmentExpression" && key === "left") return false;
  return parent.type !== "UpdateExpression" && !parent.type.endsWith("Pattern");
}

/** The names declared by patterns on the left of declarations. */
function* declaredBy(pattern) {
  if (!isNode(pattern)) return;
  if (pattern.type === "Identifier") yield pattern.name;
  else if (pattern.type === "Property") yield* declaredBy(pattern.value);
  else if (pattern.type === "AssignmentPattern") yield* declaredBy(pattern.left);
  else for (const { child } of childrenOf(pattern)) yield* declaredBy(child);
}

/** The names declared in a function or a module; with `deep`, also in nested functions. */
function namesIn(node, deep = false, names = new Set()) {
  for (const parameter of node.params ?? []) for (const name of declaredBy(parameter)) names.add(name);
  for (const { key, child } of childrenOf(node)) {
    const declared = key === "params" ? undefined : /^(?:id|param|local)$/.test(key) ? child : undefined;
    for (const name of declaredBy(declared)) names.add(name);
    if (isFunction(child) && !deep) for (const name of declaredBy(child.id)) names.add(name);
    else namesIn(child, deep, names);
  }
  return names;
}

/** Compares a pattern with code, and records what its placeholders and its renamed names stand for. */
class Comparison {
  /** @type {Bound} */
  bound = { names: new Map(), parts: new Map() };
  /** The number of names and values that are the same in the pattern and in the code. */
  #agreed = 0;

  /** @param {(own: string, name: string) => boolean} mayBeRenamed */
  constructor(mayBeRenamed) {
    this.mayBeRenamed = mayBeRenamed;
  }

  /** True if only names were compared and some differ: such a match proves too little. */
  get isByRenamingAlone() {
    return this.#agreed === 0 && [...this.bound.names].some(([own, name]) => own !== name);
  }

  same(pattern, code) {
    if (!isNode(pattern))
      return Array.isArray(pattern) ? this.#sameList(pattern, code) : this.#sameValue(pattern, code);
    if (!isNode(code)) return false;
    const [own, other] = [unwrapped(pattern), unwrapped(code)];
    if (isPlaceholder(own)) return this.#part(own.name, other);
    if (own.type !== other.type) return false;
    if (own.type === "Identifier") return this.#sameName(own.name, other.name);
    if (own.type === "Literal") this.#agreed += 1;
    const key = own.computed
      ? undefined
      : own.type === "MemberExpression"
        ? "property"
        : own.type === "Property"
          ? "key"
          : undefined;
    if (key !== undefined && (other.computed || !this.#sameKey(own[key], other[key]))) return false;
    return Object.keys(own).every(
      (each) => unseen.has(each) || each === key || this.same(own[each], other[each]),
    );
  }

  #sameKey(own, other) {
    this.#agreed += 1;
    return own.type === other.type && own.name === other.name && own.value === other.value;
  }

  #sameValue(own, other) {
    if (own instanceof RegExp) return String(own) === String(other);
    if (own === null || typeof own !== "object") return own === other;
    return Object.keys(own).every((key) => key === "raw" || own[key] === other?.[key]);
  }

  #sameList(own, other) {
    const rest = own.at(-1)?.type === "SpreadElement" && own.at(-1).argument.name === "$";
    const count = rest ? own.length - 1 : own.length;
    if (!Array.isArray(other) || other.length < count || (!rest && other.length > count)) return false;
    return own.slice(0, count).every((each, index) => this.same(each, other[index]));
  }

  #part(name, code) {
    const known = this.bound.parts.get(name);
    if (known !== undefined) return this.same(known, code);
    if (name !== "$") this.bound.parts.set(name, code);
    return true;
  }

  #sameName(own, name) {
    const known = this.bound.names.get(own);
    if (known !== undefined) return known === name;
    if (own === name) this.#agreed += 1;
    else if (!this.mayBeRenamed(own, name)) return false;
    this.bound.names.set(own, name);
    return true;
  }
}

/** The code of a file, with the nodes of each type in source order. */
export class Code {
  /** @type {Map<string, Standing[]>} */
  #byType = new Map();
  /** @type {Map<Node, Set<string>>} names that each function declares */
  #names = new Map();
  #program;

  /** @param {string} source @param {string} file */
  constructor(source, file) {
    this.source = source;
    const { program, errors } = parseSync(file, source);
    if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
    this.#program = program;
    this.#index(program, program, ".", undefined);
  }

  /**
   * The places where a pattern matches. Names of parameters and variables may differ from the pattern's if it
   * matches nowhere with its own names.
   *
   * @param {Pattern} pattern
   * @param {string | undefined} inside the function, as in `Acceptor.#write` or `#write`
   * @returns {Place[]}
   */
  placesOf(pattern, inside) {
    const first = this.#byType.get(pattern.nodes[0].type) ?? [];
    const there = first.filter(({ path }) => inside === undefined || path.includes(`.${inside}.`));
    const places = (/** @type {boolean} */ renames) =>
      there.flatMap((standing) => this.#compare(pattern, standing, renames, inside) ?? []);
    const own = places(false);
    return own.length > 0 ? own : places(true);
  }

  /**
   * @param {Node} node
   * @param {Node} owner the node, or the node around it that adds nothing but parentheses or a type
   * @param {string} path names of the enclosing classes and functions
   * @param {Functions | undefined} functions
   */
  #index(node, owner, path, functions) {
    for (const [key, value] of Object.entries(node)) {
      if (unseen.has(key) || typeof value !== "object") continue;
      const list = [value].flat();
      for (const [index, child] of list.entries()) {
        if (!isNode(child) || (child.type.startsWith("TS") && !wrappers.has(child.type))) continue;
        if (child === unwrapped(child) && isExpression(child, node, key)) {
          const next = Array.isArray(value) ? list.slice(index + 1) : [];
          if (!this.#byType.has(child.type)) this.#byType.set(child.type, []);
          this.#byType.get(child.type).push({ node: child, next, parent: owner, path, functions });
        }
        const around = isFunction(child) ? { node: child, around: functions } : functions;
        this.#index(child, wrappers.has(child.type) ? owner : child, `${path}${nameOf(child)}`, around);
      }
    }
  }

  /** @param {Pattern} pattern @param {Standing} standing @param {boolean} renames @param {string | undefined} inside */
  #compare({ nodes, isStatement }, { node, next, parent, functions }, renames, inside) {
    const mayBeRenamed = (own, name) =>
      renames && !(own in globalThis) && this.#isLocal(name, functions) && !this.#isVisible(own, functions);
    const comparison = new Comparison(mayBeRenamed);
    const list = [node, ...next.slice(0, nodes.length - 1)];
    if (list.length < nodes.length || !nodes.every((own, index) => comparison.same(own, list[index])))
      return undefined;
    if (comparison.isByRenamingAlone && inside === undefined) return undefined;
    return { start: node.start, end: list.at(-1).end, isStatement, parent, bound: comparison.bound };
  }

  #namesOf(node) {
    const known = this.#names.get(node) ?? namesIn(node);
    this.#names.set(node, known);
    return known;
  }

  /** True for a name declared in a function around a place, or in a function nested in that. */
  #isLocal(name, functions) {
    if (functions === undefined) return false;
    return functions.around === undefined
      ? namesIn(functions.node, true).has(name)
      : this.#isLocal(name, functions.around);
  }

  #isVisible(name, functions) {
    if (functions === undefined) return this.#namesOf(this.#program).has(name);
    return this.#namesOf(functions.node).has(name) || this.#isVisible(name, functions.around);
  }
}

/**
 * The wrong code as written at a place: with the names used there, and with the code that the placeholders
 * stand for.
 *
 * @param {string} code
 * @param {boolean} isStatement
 * @param {Place} place
 * @param {string} source
 */
export function written(code, isStatement, { bound }, source) {
  const renamed = new Map([...bound.names].filter(([own, name]) => own !== name));
  if (renamed.size === 0 && bound.parts.size === 0) return code.trim();
  const { nodes, text, offset } = parsedPattern(code);
  /** @type {{ start: number, end: number, text: string }[]} */
  const changes = [];
  const visit = (/** @type {Node} */ node, /** @type {boolean} */ isShort) => {
    const part = isPlaceholder(node) ? bound.parts.get(node.name) : undefined;
    const name = node.type === "Identifier" ? renamed.get(node.name) : undefined;
    if (part !== undefined) changes.push({ ...node, text: `(${source.slice(part.start, part.end)})` });
    else if (name !== undefined) changes.push({ ...node, text: isShort ? `${node.name}: ${name}` : name });
    for (const { key, child } of childrenOf(node)) {
      const isKey = (key === "property" || key === "key") && !node.computed;
      if (!isKey) visit(child, node.type === "Property" && node.shorthand);
    }
  };
  for (const node of nodes) visit(node, false);
  return changes
    .sort((a, b) => b.start - a.start)
    .reduce(
      (done, { start, end, text: now }) => done.slice(0, start - offset) + now + done.slice(end - offset),
      text,
    )
    .trim();
}
