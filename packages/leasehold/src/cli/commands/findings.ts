import { whyTooFast, clockSlew } from "../../runtime/clock-slew.js";
import { isClockSynchronized } from "../../runtime/clock-sync.js";
import type { Paint } from "../output/ansi.js";
import type { Presentation } from "../output/present.js";

/** An observation, as a sentence. */
export interface Finding {
  readonly ok: boolean;
  readonly text: string;
  /** A hint, not a fault. */
  readonly isHint?: true;
}

export interface Examination {
  readonly verdict: "ok" | "unfit" | "unavailable";
  readonly findings: readonly Finding[];
}

/** The result of examining a ground. */
export interface Examined {
  readonly presentation: Presentation;
  readonly verdict: Examination["verdict"] | "usage";
}

/** The servers or stores, keyed by their name in the document, with their findings. */
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
      ...findings.map((finding) => `${markOf(finding, paint)} ${finding.text}`),
    ],
  };
}

function markOf({ ok, isHint }: Finding, paint: Paint): string {
  if (ok) return paint("green", "✓");
  return isHint === true ? paint("yellow", "!") : paint("red", "✗");
}

/** A hint for machines without a time service. */
export async function syncHints(): Promise<Finding[]> {
  if ((await isClockSynchronized()) !== false) return [];
  const text =
    "no time service keeps the system clock of this machine: exclusion rests on its steady clock alone";
  return [{ ok: false, isHint: true, text }];
}

/** Findings about a time service that may correct clocks too fast; otherwise none. */
export async function clockFindings(clockRateError: number): Promise<Finding[]> {
  const text = whyTooFast(await clockSlew(), clockRateError);
  return text === undefined ? [] : [{ ok: false, text }];
}
