import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { colours, paintFor, plain } from "./ansi.js";
import { cellsOf, cut, pad, printable } from "./cells.js";
import { toJson } from "./json.js";
import { shortTime } from "./present.js";
import { tableLines } from "./table.js";

describe("cells", () => {
  test("count wide and combining characters, but no colours", () => {
    expect(cellsOf("lease")).toBe(5);
    expect(cellsOf("租约")).toBe(4);
    expect(cellsOf("e\u0301")).toBe(1);
    expect(cellsOf("🔒")).toBe(2);
    expect(cellsOf(colours("red", "lost"))).toBe(4);
  });

  test("cut text ends with an ellipsis, and is never too wide", () => {
    expect(cut("reports/nightly", 8)).toBe("reports…");
    expect(cut("租约租约", 4)).toBe("租…");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, width) => {
        expect(cellsOf(cut(text, width))).toBeLessThanOrEqual(Math.max(width, 0));
      }),
    );
  });

  test("text from others cannot move the cursor", () => {
    expect(printable("a\u001b[2Jb\r\nc\u202ed")).toBe("a\ufffd[2Jb\ufffd\ufffdc\ufffdd");
  });

  test("are padded on either side, and stay whole when they are longer", () => {
    expect([pad("a", 3), pad("a", 3, "right"), pad("abcd", 3)]).toEqual(["a  ", "  a", "abcd"]);
  });
});

test("colours are for terminals whose user has not declined them", () => {
  expect(paintFor(true, {})("red", "x")).toBe("\u001b[31mx\u001b[0m");
  for (const paint of [
    paintFor(false, {}),
    paintFor(true, { NO_COLOR: "1" }),
    paintFor(true, { TERM: "dumb" }),
  ]) {
    expect(paint("red", "x")).toBe("x");
  }
  expect(paintFor(true, { NO_COLOR: "" })).toBe(colours);
});

describe("a table", () => {
  const columns = [
    { title: "NAME", shrinks: true },
    { title: "TOKEN", align: "right" as const },
    { title: "SEEN" },
  ];
  const rows = [
    [{ text: "reports/nightly" }, { text: "7" }, { text: "yes" }],
    [{ text: "b" }, { text: "1234567" }, { text: "" }],
  ];

  test("is aligned", () => {
    expect(tableLines(columns, rows, plain)).toEqual([
      "NAME               TOKEN  SEEN",
      "reports/nightly        7  yes",
      "b                1234567",
    ]);
  });

  test("is cut in shrinkable columns, when the terminal is narrow", () => {
    expect(tableLines(columns, rows, plain, 25)).toEqual([
      "NAME          TOKEN  SEEN",
      "reports/n…        7  yes",
      "b           1234567",
    ]);
    expect(Math.max(...tableLines(columns, rows, plain, 5).map(cellsOf))).toBe(23);
  });

  test("paints texts, not the blanks around them", () => {
    const painted = tableLines(
      [{ title: "A" }, { title: "B" }],
      [[{ text: "x", style: "red" }, { text: "$&" }]],
      colours,
    );
    expect(painted[1]).toBe("\u001b[31mx\u001b[0m  $&");
  });
});

test("durations have readable units", () => {
  expect([0, 850, 999.6, 4_100, 59_949, 60_000, 200_000, 7_500_000].map(shortTime)).toEqual([
    "0 ms",
    "850 ms",
    "1.0 s",
    "4.1 s",
    "59.9 s",
    "1 min 0 s",
    "3 min 20 s",
    "2 h 5 min",
  ]);
});

test("tokens become decimal strings in JSON", () => {
  expect(toJson({ token: 18446744073709551616n })).toBe('{"token":"18446744073709551616"}');
});

test("no control character of others reaches a terminal, not even in JSON", () => {
  const name = "a\u007fb\u009b31mc\u202ed\u001be";
  expect(printable(name)).toBe("a\ufffdb\ufffd31mc\ufffdd\ufffde");
  const written = toJson({ name, token: 7n });
  expect(written).toBe('{"name":"a\\u007fb\\u009b31mc\\u202ed\\u001be","token":"7"}');
  expect(JSON.parse(written)).toEqual({ name, token: "7" });
});
