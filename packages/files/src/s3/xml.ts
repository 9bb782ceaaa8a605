import { escaped, parseXml, type XmlElement, xmlHead } from "../webdav/xml.js";
import { S3Error } from "./errors.js";

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/";

/** XML to be inserted without escaping. */
export class Xml {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | boolean | Xml | undefined;

/** Elements in order. Undefined ones are left out. */
export function elements(fields: readonly (readonly [name: string, value: Value])[]): Xml {
  const parts = fields.flatMap(([name, value]) => {
    if (value === undefined) return [];
    const inside = value instanceof Xml ? value.text : escaped(String(value));
    return [`<${name}>${inside}</${name}>`];
  });
  return new Xml(parts.join(""));
}

export function documentOf(root: string, content: Xml): string {
  return `${xmlHead}<${root} xmlns="${namespace}">${content.text}</${root}>\n`;
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * The children of an element with that name, in any namespace, because some clients leave the namespace out.
 */
export function childrenOf(element: XmlElement, local: string): XmlElement[] {
  return element.children.filter((child) => child.local === local);
}

export function textOf(element: XmlElement, local: string): string | undefined {
  return childrenOf(element, local)[0]?.text.trim();
}

/** @throws S3Error `MalformedXML` */
export function documentIn(text: string, root: string): XmlElement {
  try {
    const element = parseXml(text);
    if (element.local === root) return element;
  } catch (cause) {
    throw new S3Error("MalformedXML", cause instanceof Error ? cause.message : "the body is not valid XML");
  }
  throw new S3Error("MalformedXML", `the body is no ${root}`);
}
