import { fullName } from "./catalogue.js";
import type { MetricDefinition, TextFormat } from "./types.js";
import type { Exemplar, Registry, Series } from "./registry.js";

export const contentTypes: Readonly<Record<TextFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** The longest resource name in an exemplar: together with its label it may have at most 128 characters. */
const resourceCharactersMax = 100;

/** A metric with its name. */
interface Named extends MetricDefinition {
  readonly full: string;
}

export function textOf(registry: Registry, format: TextFormat): string {
  const lines = [...registry.read()].flatMap(([name, series]) => {
    const definition = registry.definitions.get(name)!;
    return linesOf({ ...definition, full: fullName(name, definition) }, series, format);
  });
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function linesOf(metric: Named, all: readonly Series[], format: TextFormat): string[] {
  const { full, kind, unit, help } = metric;
  const isOpen = format === "openmetrics";
  const sample = kind === "counter" ? `${full}_total` : full;
  const family = isOpen ? full : sample;
  const head = [`# HELP ${family} ${help}`, `# TYPE ${family} ${kind}`];
  if (isOpen && unit !== "") head.splice(1, 0, `# UNIT ${family} ${unit}`);
  return [
    ...head,
    ...all.flatMap((series) =>
      series.distribution === undefined
        ? [`${sample}${labelsOf(metric, series)} ${numberText(series.value)}`]
        : histogramLines(metric, series, isOpen),
    ),
  ];
}

function histogramLines(metric: Named, series: Series, isOpen: boolean): string[] {
  const { buckets, counts, exemplars, sum } = series.distribution!;
  const { full } = metric;
  let total = 0;
  const bucketLines = counts.map((count, at) => {
    total += count;
    const bound = at < buckets.length ? numberText(buckets[at]!) : "+Inf";
    const line = `${full}_bucket${labelsOf(metric, series, bound)} ${total}`;
    const exemplar = exemplars[at];
    return isOpen && exemplar !== undefined ? `${line} ${exemplarText(exemplar)}` : line;
  });
  const labels = labelsOf(metric, series);
  return [...bucketLines, `${full}_sum${labels} ${numberText(sum)}`, `${full}_count${labels} ${total}`];
}

function exemplarText({ resource, value, atMs }: Exemplar): string {
  const characters = [...resource];
  const isShort = characters.length <= resourceCharactersMax;
  const shown = isShort ? resource : `${characters.slice(0, resourceCharactersMax - 1).join("")}…`;
  return `# {resource="${escaped(shown)}"} ${numberText(value)} ${(atMs / 1_000).toFixed(3)}`;
}

function labelsOf(metric: Named, { labels }: Series, bound?: string): string {
  const pairs = metric.labels.map((label, at) => `${label}="${escaped(labels[at]!)}"`);
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
