import { describe, expect, test } from "vitest";

/** Published code is shrunk, and its stack traces still show the function, the file and the line. */

const at = "../scripts/shrink.mjs";
const { shrink } = (await import(at)) as { shrink: (name: string, code: string) => string };

const code = `
  export class Counter {
    #count = 0;
    add(amount) {
      const twice = amount * 2;
      this.#count += twice;
      return this.#count;
    }
    failNow() { const text = \`a;
    b {\`; throw new Error(text); }
  }
  export function outer(callback) { return callback("{;} :"); }
  export const arrow = (value) => { switch (value) { case 1: return "one"; default: return { body: [value] }; } };
`;

interface Made {
  readonly Counter: new () => { add(amount: number): number; failNow(): void };
  readonly outer: (callback: (text: string) => string) => string;
  readonly arrow: (value: number) => unknown;
}

const load = async (text: string) =>
  (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(text)}`)) as Made;

describe("shrunk code", () => {
  const shrunk = shrink("made.js", code);

  test("is smaller and does the same", async () => {
    const { Counter, outer, arrow } = await load(shrunk);
    expect(shrunk.length).toBeLessThan(code.length * 0.75);
    expect(new Counter().add(3)).toBe(6);
    expect(outer((text) => text)).toBe("{;} :");
    expect([arrow(1), arrow(2)]).toEqual(["one", { body: [2] }]);
    expect(() => new Counter().failNow()).toThrow("a;\n    b {");
  });

  test("keeps the names of functions, methods and classes", async () => {
    const { Counter, outer, arrow } = await load(shrunk);
    expect([Counter.name, outer.name, arrow.name]).toEqual(["Counter", "outer", "arrow"]);
    const stack = (() => {
      try {
        new Counter().failNow();
        return "";
      } catch (error) {
        return (error as Error).stack ?? "";
      }
    })();
    expect(stack).toContain("Counter.failNow");
  });

  test("has each statement on a line of its own", () => {
    const lines = shrunk.split("\n");
    expect(lines.filter((line) => line.startsWith("return")).length).toBe(4);
    expect(lines.some((line) => line.startsWith("throw"))).toBe(true);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(80);
  });

  test("is CommonJS if it was", () => {
    expect(
      shrink(
        "made.js",
        '"use strict";\nconst { join } = require("node:path");\nmodule.exports = join("a");\n',
      ),
    ).toBe('"use strict";\nconst{join}=require("node:path");\nmodule.exports=join(`a`);');
  });

  test("is refused if it can't be read", () => {
    expect(() => shrink("made.js", "export const = 1;")).toThrow(/made\.js/);
  });
});
