/**
 * The key of the marker, after the prefix. It sorts first, because tools empty a bucket in alphabetical
 * order, and a half-empty bucket must not look like one that never had more.
 */
export const markerKey = ".leasehold-marker";

const cellStart = "cell=";

/** A register is one flat key, in which no server sees folders, `..` or double slashes. */
export function keyOf(register: string): string {
  return cellStart + register.replace(/[%/]/g, (character) => (character === "%" ? "%25" : "%2F"));
}

/** The register of a key; `undefined` for other keys. */
export function registerOf(key: string): string | undefined {
  if (!key.startsWith(cellStart)) return undefined;
  return key.slice(cellStart.length).replace(/%(2F|25)/g, (_, code) => (code === "25" ? "%" : "/"));
}

export interface KeyPage {
  readonly keys: readonly string[];
  /** Where the next page starts; `undefined` after the last page. */
  readonly next: string | undefined;
}

/** Parses a page of `ListObjectsV2`. */
export function parseKeyPage(xml: string): KeyPage {
  const isEncoded = xml.includes("<EncodingType>url</EncodingType>");
  const decode = (text: string) =>
    isEncoded ? decodeURIComponent(unescapeXml(text).replaceAll("+", " ")) : unescapeXml(text);
  const token = /<NextContinuationToken>([^<]*)</.exec(xml)?.[1];
  return {
    keys: [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].map((match) => decode(match[1]!)),
    next: token === undefined ? undefined : unescapeXml(token),
  };
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex as string, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return entities[name as string] ?? whole;
  });
}
