// Renders a specification as SVG, without a browser and without a canvas.
import * as vega from "vega";
import { compile } from "vega-lite";
import { config, ink } from "./style.mjs";

/**
 * Widths of letters as shares of the font size, for a wide font (DejaVu), so that all text fits. Without a
 * canvas, vega assumes 0.8 for each letter.
 */
const narrow = /[ijltfrI.,:;'|!() ]/;
const wide = /[mwMW%@]/;
const widthOf = (text, fontSizePx) =>
  [...text].reduce((sum, letter) => sum + (narrow.test(letter) ? 0.38 : wide.test(letter) ? 0.95 : 0.64), 0) *
  fontSizePx;
vega.textMetrics.width = (item, text = item.text) =>
  Math.max(0, ...[text].flat().map((line) => widthOf(String(line ?? ""), item.fontSize ?? 11)));

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** `digest` identifies the rows; title and description are for screen readers. */
export async function draw(spec, digest) {
  const view = new vega.View(vega.parse(compile({ ...spec, config }).spec), { renderer: "none" });
  const drawn = await view.toSVG();
  view.finalize();
  const [, width, height] = /width="([\d.]+)" height="([\d.]+)"/.exec(drawn);
  const card = `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#ffffff" stroke="${ink.line}"/>`;
  const { text, subtitle } = spec.title;
  const about = [
    `<title>${escaped(text)}</title>`,
    `<desc>${escaped(subtitle.join(" "))}</desc>`,
    `<metadata>rows ${digest}</metadata>`,
  ].join("");
  return `${drawn.replace(/^(<svg[^>]*>)/, `$1\n${about}\n${card}`)}\n`;
}
