import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** The paths of chrony's configuration in Linux distributions. */
const chronyFiles = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];

/** chrony's own default of `maxslewrate`, in parts per million. */
const chronyDefaultPpm = 83_333.333;

/** The maximum number of files read for one configuration. */
const filesMax = 100;

/** How far the rate of this machine's clocks may be off while a time service corrects them. */
export interface ClockSlew {
  /** As a fraction of 1, like ρ. */
  readonly rateError: number;
  /** The source of the value, for messages. */
  readonly source: string;
}

/**
 * The slew rate in this machine's chrony configuration. `undefined` without one: ntpd and systemd-timesyncd
 * stay within 500 ppm, and Node cannot query what other programs have set in Linux.
 */
export async function clockSlew(files: readonly string[] = chronyFiles): Promise<ClockSlew | undefined> {
  for (const file of files) {
    const lines = await linesOf(file, { left: filesMax });
    if (lines === undefined) continue;
    // As in chrony, the last setting counts.
    const said = lines.flatMap((line) => /^\s*maxslewrate\s+(\S+)/i.exec(line)?.[1] ?? []).at(-1);
    const ppm = Number(said ?? chronyDefaultPpm);
    if (!(ppm >= 0)) return undefined;
    const source =
      said === undefined ? `chrony's default, as ${file} names no maxslewrate` : `maxslewrate in ${file}`;
    return { rateError: ppm / 1e6, source };
  }
  return undefined;
}

/** Why leases with this ρ are not safe on this machine; `undefined` if no reason is known. */
export function whyTooFast(slew: ClockSlew | undefined, clockRateError: number): string | undefined {
  if (slew === undefined || slew.rateError <= clockRateError) return undefined;
  return `clocks of this machine may be ${percent(slew.rateError)} too fast or too slow (${slew.source}), and clockRateError allows for ${percent(clockRateError)}: set maxslewrate ${Math.floor(clockRateError * 1e6)} there, or raise clockRateError for all users`;
}

function percent(part: number): string {
  return `${Number((part * 100).toPrecision(3))} %`;
}

/** The file's lines, with those of included files; `undefined` if it cannot be read. */
async function linesOf(file: string, files: { left: number }): Promise<string[] | undefined> {
  if (files.left-- <= 0) return undefined;
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const parts = text.split("\n").map(async (line) => {
    const [, directive, place] = /^\s*(include|confdir)\s+(\S+)/i.exec(line) ?? [];
    if (directive === undefined) return [line];
    const more = await included(directive, place!);
    return (await Promise.all(more.map((each) => linesOf(each, files)))).flatMap((lines) => lines ?? []);
  });
  return (await Promise.all(parts)).flat();
}

async function included(directive: string, place: string): Promise<string[]> {
  if (directive.toLowerCase() === "include") return [resolve(place)];
  const names = await readdir(place).catch(() => []);
  return names
    .filter((name) => name.endsWith(".conf"))
    .toSorted()
    .map((name) => join(place, name));
}
