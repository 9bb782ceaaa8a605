import { whyTooFast, clockSlew } from "../../runtime/clock-slew.js";
import type { Presentation } from "../output/present.js";

/** What was seen, as a sentence. */
export interface Finding {
  readonly ok: boolean;
  readonly text: string;
}

export interface Examination {
  readonly verdict: "ok" | "unfit" | "unavailable";
  readonly findings: readonly Finding[];
}

/** Those who were asked, under their name in the document, and below them what was found. */
export function presentFindings(
  name: string,
  asked: Presentation,
  { findings, verdict }: Examination,
): Presentation {
  return {
    document: { verdict, findings, [name]: asked.document },
    table: (paint, widthMax) => [
      ...asked.table(paint, widthMax),
      "",
      ...findings.map(({ ok, text }) => `${ok ? paint("green", "✓") : paint("red", "✗")} ${text}`),
    ],
  };
}

/** What the time service of this machine may do to its clocks, where that is too much; else nothing. */
export async function clockFindings(clockRateError: number): Promise<Finding[]> {
  const text = whyTooFast(await clockSlew(), clockRateError);
  return text === undefined ? [] : [{ ok: false, text }];
}
