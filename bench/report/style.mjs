// The style of all charts: colours that colour-blind readers can distinguish (Okabe and Ito's, darkened for a
// white background), fonts and lines. Each chart has a white background, so it is also readable on a dark
// page.

/** The order and the colour of each system, the same in every chart. */
export const systems = {
  "bare exchange": { name: "bare exchange (the limit)", colour: "#6b7280" },
  leasehold: { name: "Leasehold", colour: "#0062a3" },
  "leasehold (key)": { name: "Leasehold, cluster key", colour: "#0062a3" },
  "leasehold (certificates)": { name: "Leasehold, certificates", colour: "#0062a3" },
  redlock: { name: "Redlock, three Redis", colour: "#c2410c" },
  "leasehold core": { name: "Leasehold core", colour: "#007a5a" },
  etcd: { name: "etcd", colour: "#a3497f" },
  zookeeper: { name: "ZooKeeper", colour: "#96690a" },
};

export const ink = { text: "#1f2937", quiet: "#4b5563", line: "#d1d5db", grid: "#eceef1" };
export const fontFamily = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif";
/** GitHub's pages show an image at most this wide. */
export const widthPx = 800;
export const edgePx = 20;

export const config = {
  background: null,
  padding: { left: edgePx, right: edgePx, top: 18, bottom: 16 },
  font: fontFamily,
  view: { stroke: null },
  title: {
    anchor: "start",
    frame: "bounds",
    fontSize: 17,
    fontWeight: 600,
    color: ink.text,
    subtitleFontSize: 13,
    subtitleColor: ink.quiet,
    subtitlePadding: 6,
    offset: 16,
  },
  axis: {
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 400,
    labelColor: ink.quiet,
    titleColor: ink.quiet,
    domainColor: ink.line,
    tickColor: ink.line,
    gridColor: ink.grid,
    titlePadding: 8,
  },
  text: { fontSize: 12 },
  legend: { labelFontSize: 12, labelColor: ink.text, titleColor: ink.quiet },
};

/** Formats a number for readers, with at most three significant digits. */
export function said(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return Number(value.toPrecision(size >= 1_000 ? 2 : 3)).toLocaleString("en-US");
  return String(Number(value.toPrecision(2)));
}

/** Breaks a text into lines of at most this many pixels, in the subtitle's font. */
export function wrapped(text, px) {
  const letters = Math.floor(px / 7.5);
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line.length + word.length + 1 > letters) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
