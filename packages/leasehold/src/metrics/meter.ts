import type { Registry } from "./registry.js";
import type { Attributes, BatchCallback, MeterLike, Observable } from "./types.js";

/** Units in UCUM notation. A count has none, because exporters for Prometheus treat "1" as a ratio. */
const units = { "": "", seconds: "s", bytes: "By", ratio: "1" } as const;

/** Exports all metrics to a meter. Returns a function that stops it. */
export function exportTo(meter: MeterLike, registry: Registry): () => void {
  const histograms = new Map<string, ReturnType<MeterLike["createHistogram"]>>();
  const observables = new Map<string, Observable>();
  for (const [name, { help: description, unit, kind, buckets = [] }] of registry.definitions) {
    const options = { description, unit: units[unit] };
    const dotted = name.replaceAll("_", ".");
    if (kind === "gauge") observables.set(name, meter.createObservableGauge(dotted, options));
    else if (kind === "counter") observables.set(name, meter.createObservableCounter(dotted, options));
    else {
      const advice = { explicitBucketBoundaries: [...buckets] };
      histograms.set(name, meter.createHistogram(dotted, { ...options, advice }));
    }
  }
  const read: BatchCallback = (result) => {
    for (const [name, all] of registry.read()) {
      const instrument = observables.get(name);
      if (instrument === undefined) continue;
      for (const { labels, value } of all)
        result.observe(instrument, value, attributesOf(registry, name, labels));
    }
  };
  const instruments = [...observables.values()];
  meter.addBatchObservableCallback(read, instruments);
  const detach = registry.attach((name, labels, value) =>
    histograms.get(name)?.record(value, attributesOf(registry, name, labels)),
  );
  return () => {
    meter.removeBatchObservableCallback(read, instruments);
    detach();
  };
}

function attributesOf(registry: Registry, name: string, labels: readonly string[]): Attributes {
  const names = registry.definitions.get(name)!.labels;
  return Object.fromEntries(names.map((label, at) => [label, labels[at]!]));
}
