import type { HolderHint } from "../../lease/types.js";
import { withLeases } from "../connection.js";
import { exitCode } from "../exit-codes.js";
import type { Paint, Style } from "../output/ansi.js";
import { cut, pad, printable } from "../output/cells.js";
import { type Presentation, present, shortTime } from "../output/present.js";
import { type SharedOptions, settingsOf } from "../settings.js";
import { confirmedText, leaseView } from "./lease-view.js";

const LABEL_CELLS = 11;
const stateStyle: Record<HolderHint["state"], Style> = { held: "green", free: "cyan", unknown: "yellow" };

/** `leasehold get NAME`. Its exit code says that the cluster answered, not what it answered. */
export async function get(resource: string, options: SharedOptions): Promise<number> {
  const settings = settingsOf(options);
  const hint = await withLeases(settings, (leases) =>
    leases.holder(resource, { timeout: settings.timeoutMs }),
  );
  present(settings.output, presentLease(resource, hint));
  return exitCode("ok");
}

export function presentLease(resource: string, hint: HolderHint): Presentation {
  const view = leaseView({ ...hint, resource });
  return {
    document: view,
    objects: [view],
    table: (paint: Paint, widthMax: number) => {
      const line = (label: string, text: string, style?: Style): string => {
        const shown = cut(printable(text), widthMax - LABEL_CELLS);
        return paint("dim", pad(label, LABEL_CELLS)) + (style === undefined ? shown : paint(style, shown));
      };
      const lines = [
        line("resource", resource, "bold"),
        line("state", stateText(hint), stateStyle[hint.state]),
      ];
      if (hint.holder !== undefined) lines.push(line("holder", hint.holder));
      if (hint.token !== undefined) lines.push(line("token", String(hint.token), "cyan"));
      if (hint.remainingMs !== undefined) {
        lines.push(line("time left", `at most ${shortTime(hint.remainingMs)} unless it is renewed`));
      }
      return lines;
    },
  };
}

function stateText(hint: HolderHint): string {
  if (hint.state === "unknown") return "unknown (too few members answered alike)";
  return `${hint.state}, ${confirmedText(hint.confirmed)}`;
}
