import { catalogue, type Definition, fullName, type MetricName } from "./catalogue.js";
import type { TextFormat } from "./types.js";
import type { Exemplar, Registry, Series } from "./registry.js";

export const contentTypes: Readonly<Record<TextFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** The longest name of a resource in an exemplar: with its label it has at most 128 characters. */
const resourceCharactersMax = 100;

export function textOf(registry: Registry, format: TextFormat): string {
  const lines = [...registry.read()].flatMap(([name, series]) => linesOf(name, series, format));
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function linesOf(name: MetricName, all: readonly Series[], format: TextFormat): string[] {
  const { kind, unit, help }: Definition = catalogue[name];
  const full = fullName(name);
  const isOpen = format === "openmetrics";
  const sample = kind === "counter" ? `${full}_total` : full;
  const family = isOpen ? full : sample;
  const head = [`# HELP ${family} ${help}`, `# TYPE ${family} ${kind}`];
  if (isOpen && unit !== "") head.splice(1, 0, `# UNIT ${family} ${unit}`);
  return [
    ...head,
    ...all.flatMap((series) =>
      series.distribution === undefined
        ? [`${sample}${labelsOf(name, series)} ${numberText(series.value)}`]
        : histogramLines(name, series, isOpen),
    ),
  ];
}

function histogramLines(name: MetricName, series: Series, isOpen: boolean): string[] {
  const { buckets = [] }: Definition = catalogue[name];
  const { counts, exemplars, sum } = series.distribution!;
  const full = fullName(name);
  let total = 0;
  const bucketLines = counts.map((count, at) => {
    total += count;
    const bound = at < buckets.length ? numberText(buckets[at]!) : "+Inf";
    const line = `${full}_bucket${labelsOf(name, series, bound)} ${total}`;
    const exemplar = exemplars[at];
    return isOpen && exemplar !== undefined ? `${line} ${exemplarText(exemplar)}` : line;
  });
  const labels = labelsOf(name, series);
  return [...bucketLines, `${full}_sum${labels} ${numberText(sum)}`, `${full}_count${labels} ${total}`];
}

function exemplarText({ resource, value, atMs }: Exemplar): string {
  const characters = [...resource];
  const isShort = characters.length <= resourceCharactersMax;
  const shown = isShort ? resource : `${characters.slice(0, resourceCharactersMax - 1).join("")}…`;
  return `# {resource="${escaped(shown)}"} ${numberText(value)} ${(atMs / 1_000).toFixed(3)}`;
}

function labelsOf(name: MetricName, { labels }: Series, bound?: string): string {
  const pairs = catalogue[name].labels.map((label, at) => `${label}="${escaped(labels[at]!)}"`);
  if (bound !== undefined) pairs.push(`le="${bound}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
