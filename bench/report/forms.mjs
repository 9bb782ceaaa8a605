// The kinds of charts, as specifications of vega-lite. They know rows and axes, but not what was measured.
import { edgePx, ink, said, systems, widthPx, wrapped } from "./style.mjs";

const rowPx = 36;
/** The width of the systems' names, left of the points. */
const labelsPx = 190;
/** The gap between two adjacent charts. */
const gapPx = 24;
/** The width of the scale, left of a line chart. */
const scalePx = 66;
const innerPx = widthPx - 2 * edgePx;

const nameOf = (system) => systems[system].name;
const order = Object.keys(systems).map(nameOf);

/** Maps a row of the file to a chart's datum. */
const datum = (row, more = {}) => ({
  system: nameOf(row.system),
  value: row.median,
  min: row.min,
  max: row.max,
  label: said(row.median),
  ...more,
});

const colour = {
  field: "system",
  type: "nominal",
  legend: null,
  scale: { domain: order, range: Object.values(systems).map((system) => system.colour) },
};

/**
 * The domain of a logarithmic axis: from the power of ten below the least value to a little more than the
 * greatest.
 */
function decades(values) {
  const least = Math.min(...values.filter((value) => value > 0));
  return [10 ** Math.floor(Math.log10(least)), Math.max(...values) * 2];
}

const extremes = (values) => values.flatMap(({ min, max }) => [min, max]);
const powersOfTen = Array.from({ length: 13 }, (_, index) => 10 ** (index - 4));
const logAxis = (title, [least, most]) => ({
  title,
  format: "~s",
  values: powersOfTen.filter((power) => power >= least && power <= most),
});

const namesOf = (series) => series.flatMap(({ rows }) => rows.map(({ system }) => nameOf(system)));

/**
 * A line for each system, with a point for each of its series (median and 99th percentile) and whiskers to
 * the least and the greatest round. `series` is `[{ label, filled, rows }]`; the topmost system's points are
 * labelled.
 */
function dots({ series, unit, domain, names = namesOf(series), showSystems = true, width }) {
  // A logarithmic axis cannot show 0.
  const values = series.flatMap(({ label, filled = true, rows }) =>
    rows.filter(({ median }) => median > 0).map((row) => datum(row, { kind: label, filled })),
  );
  const shown = domain ?? decades(extremes(values));
  for (const value of values) value.min = Math.max(value.min, shown[0]);
  const sort = order.filter((name) => names.includes(name));
  const missing = sort.filter((name) => values.every(({ system }) => system !== name));
  const x = {
    field: "value",
    type: "quantitative",
    scale: { type: "log", domain: shown, nice: false },
    axis: logAxis(unit, shown),
  };
  const y = {
    field: "system",
    type: "nominal",
    scale: { domain: sort },
    title: null,
    axis: {
      labels: showSystems,
      labelLimit: labelsPx,
      labelPadding: 10,
      labelColor: ink.text,
      ticks: false,
      domain: false,
      grid: true,
    },
  };
  const span = {
    mark: { type: "rule", strokeWidth: 1.5, opacity: 0.45 },
    encoding: {
      x: { aggregate: "min", field: "value", type: "quantitative" },
      x2: { aggregate: "max", field: "value" },
      color: colour,
    },
  };
  const kinds = {
    transform: [{ filter: `datum.system === ${JSON.stringify(sort[0])}` }],
    mark: { type: "text", dy: -27, fontSize: 11, color: ink.quiet },
    encoding: { x, text: { field: "kind" } },
  };
  const layer = [
    ...(series.length > 1 ? [span, kinds] : []),
    {
      mark: { type: "rule", strokeWidth: 3.5, strokeCap: "round", opacity: 0.35 },
      encoding: { x: { ...x, field: "min" }, x2: { field: "max" }, color: colour },
    },
    {
      mark: { type: "point", size: 75, strokeWidth: 2, opacity: 1 },
      encoding: {
        x,
        color: colour,
        fill: { ...colour, condition: { test: "!datum.filled", value: "#ffffff" } },
      },
    },
    {
      mark: { type: "text", dy: -12, fontWeight: 600 },
      encoding: { x, text: { field: "label" }, color: colour },
    },
  ];
  if (missing.length > 0)
    layer.push({
      data: { values: missing.map((system) => ({ system, value: shown[0] })) },
      mark: { type: "text", align: "left", dx: 6, fontStyle: "italic", color: ink.quiet },
      encoding: { x, text: { value: "no figure" } },
    });
  return { data: { values }, width, height: { step: rowPx }, encoding: { y }, layer };
}

/** One question over all systems. */
export function dotChart({ title, subtitle, ...rest }) {
  return { title: heading(title, subtitle), ...dots({ ...rest, width: innerPx - labelsPx }) };
}

/**
 * Several questions over the same systems, side by side; the systems are named once. `sameScale`: one axis
 * for all.
 */
export function dotPanels({ title, subtitle, panels: asked, sameScale = false }) {
  const panels = asked.filter(({ series }) => series.some((one) => one.rows.length > 0));
  const width = (innerPx - labelsPx - gapPx * (panels.length - 1)) / panels.length;
  const rows = panels.flatMap(({ series }) => series.flatMap((one) => one.rows));
  // Each system has its line in all panels, even where it has no figure.
  const names = panels.flatMap(({ series }) => namesOf(series));
  const common = { names, ...(sameScale && { domain: decades(extremes(rows)) }) };
  return {
    title: heading(title, subtitle),
    spacing: gapPx,
    hconcat: panels.map(({ question, ...panel }, index) => ({
      title: panelHeading(question),
      ...dots({ ...common, ...panel, width, showSystems: index === 0 }),
    })),
  };
}

/**
 * A line for each series over a quantity: `series` is `[{ system, label, dashed, points: [{ x, row }] }]`,
 * `x` and `y` are `{ title, log }`. Each line's name is at its end.
 */
function lines({ series, x, y, width, height, labelPx = 84 }) {
  const values = series.flatMap(({ system, label = nameOf(system), dashed = false, points }) =>
    points.map((point) => datum({ ...point.row, system }, { at: point.x, line: label, dashed })),
  );
  const ends = series.flatMap(({ label }, index) => {
    const line = label ?? nameOf(series[index].system);
    return values.filter((value) => value.line === line).toSorted((one, other) => other.at - one.at)[0] ?? [];
  });
  const places = values.map(({ at }) => at);
  const shown = y.log ? decades(extremes(values)) : [0, Math.max(...extremes(values)) * 1.15];
  const encoding = {
    x: {
      field: "at",
      type: "quantitative",
      scale: x.log
        ? { type: "log", domain: [Math.min(...places) * 0.9, Math.max(...places) * 1.1], nice: false }
        : { domain: [0, Math.max(...places) * 1.02], nice: false },
      axis: {
        title: x.title,
        format: "~s",
        grid: false,
        labelOverlap: false,
        ...(x.values && { values: x.values }),
      },
    },
    y: {
      field: "value",
      type: "quantitative",
      scale: { type: y.log ? "log" : "linear", domain: shown, nice: false },
      axis: {
        ...(y.log ? logAxis(y.title, shown) : { title: y.title, format: "~s", tickCount: 6 }),
        domain: false,
        ticks: false,
      },
    },
    color: colour,
    detail: { field: "line", type: "nominal" },
  };
  const dash = {
    field: "dashed",
    type: "nominal",
    legend: null,
    scale: {
      domain: [false, true],
      range: [
        [1, 0],
        [5, 4],
      ],
    },
  };
  const solid = [{ filter: "!datum.dashed" }];
  return {
    data: { values },
    width: width - labelPx - scalePx,
    height,
    encoding,
    layer: [
      { mark: { type: "line", strokeWidth: 2 }, encoding: { strokeDash: dash } },
      {
        transform: solid,
        mark: { type: "rule", strokeWidth: 3.5, strokeCap: "round", opacity: 0.35 },
        encoding: { y: { ...encoding.y, field: "min" }, y2: { field: "max" } },
      },
      { transform: solid, mark: { type: "point", filled: true, size: 45, opacity: 1 } },
      {
        data: { values: ends },
        mark: { type: "text", align: "left", dx: 8, fontWeight: 600 },
        encoding: { text: { field: "line" } },
      },
    ],
  };
}

/** One question, answered over a quantity. */
export function lineChart({ title, subtitle, ...rest }) {
  return { title: heading(title, subtitle), ...lines({ ...rest, width: innerPx, height: 300 }) };
}

/** Several questions over the same quantity, side by side. */
export function linePanels({ title, subtitle, panels: asked }) {
  const panels = asked.filter(({ series }) => series.length > 0);
  const labelPx = 84;
  const width = innerPx / panels.length;
  return {
    title: heading(title, subtitle),
    spacing: labelPx + scalePx,
    bounds: "flush",
    hconcat: panels.map(({ question, ...panel }) => ({
      title: panelHeading(question),
      ...lines({ ...panel, width, labelPx, height: 220 }),
    })),
  };
}

const heading = (text, subtitle) => ({
  text,
  subtitle: subtitle.flatMap((line) => (line === "" ? [] : wrapped(line, innerPx))),
});
const panelHeading = (text) => ({ text, fontSize: 13, offset: 12, frame: "group" });
