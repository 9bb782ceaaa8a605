export interface CallSpread {
  readonly line: number;
  readonly code: string;
}

/** Allowed: rest parameters, and lists whose length is checked where they are spread. */
const allowed = /^(?:\w+\s*:|\w+\) =>|\[[^\]]*\]\s*:|few\()/;

const opening = "([{";
const closing = ")]}";

/**
 * The places where a program spreads a list into the arguments of a call: `f(...list)`, `new F(...list)`, and
 * `f.apply(it, list)`.
 */
export function callSpreads(text: string): CallSpread[] {
  const code = withoutText(text);
  const found: number[] = [];
  const open: string[] = [];
  let before = "";
  for (let at = 0; at < code.length; at += 1) {
    const character = code[at]!;
    if (code.startsWith("...", at)) {
      // The token before the bracket makes it a call. After keywords such as `if` no list is spread.
      if (open.at(-1) === "call" && !allowed.test(text.slice(at + 3))) found.push(at);
      at += 2;
    } else if (opening.includes(character)) {
      open.push(character === "(" && /[\w$)\]>]/.test(before) ? "call" : character);
    } else if (closing.includes(character)) open.pop();
    if (/\S/.test(character)) before = character;
  }
  for (const { index } of code.matchAll(/\b(?:fromCharCode|push|max|min|of|concat|assign)\.apply\(/g))
    found.push(index);
  return found.map((at) => {
    const line = text.slice(0, at).split("\n").length;
    return { line, code: text.split("\n")[line - 1]!.trim() };
  });
}

/**
 * The text with comments, strings and regular expressions blanked, at the same length. Code in `${…}` stays.
 */
function withoutText(text: string): string {
  const tokens =
    /\/\/[^\n]*|\/\*[^]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?<=[=(,:!&|?[{;]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/g;
  const blank = (token: string) => token.replace(/[^\n]/g, " ");
  return withoutTemplates(text.replace(tokens, blank));
}

function withoutTemplates(text: string): string {
  let kept = "";
  /** For each open template: the number of open brackets inside of its `${…}`, or -1 in its text. */
  const depths: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    const depth = depths.at(-1);
    if (depth === -1) {
      if (character === "`") depths.pop();
      else if (character === "\\") at += 1;
      else if (text.startsWith("${", at)) depths[depths.length - 1] = 0;
      kept += character === "\\" ? "  " : character === "\n" ? "\n" : " ";
      continue;
    }
    if (character === "`") depths.push(-1);
    else if (depth !== undefined && character === "{" && text[at - 1] !== "$")
      depths[depths.length - 1] = depth + 1;
    else if (depth !== undefined && character === "}") depths[depths.length - 1] = depth - 1;
    kept += character === "`" || (depth === 0 && character === "}") || text[at - 1] === "$" ? " " : character;
  }
  return kept;
}
