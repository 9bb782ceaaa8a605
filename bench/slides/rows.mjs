// The form of a row, as `bench/results/latest.json` has them.
const rounded = (value) => Number(value.toPrecision(4));

export function rowOf(figure, system, unit, values, more = {}) {
  const sorted = values.toSorted((one, other) => one - other);
  const [median, min, max] = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)].map(rounded);
  return { figure, system, unit, median, min, max, rounds: values.length, ...more };
}
