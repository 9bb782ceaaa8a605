import { SaxesParser } from "saxes";
import { Refusal } from "./refusal.js";

export const davNamespace = "DAV:";

export interface XmlName {
  readonly namespace: string;
  readonly local: string;
}

export interface XmlElement extends XmlName {
  readonly children: XmlElement[];
  text: string;
}

/** Elements within each other: requests of WebDAV have five. */
const depthMax = 32;

/**
 * Reads the body of a request. A document type is refused, so nothing in it can expand or point elsewhere.
 *
 * @throws Refusal 400
 */
export function parseXml(text: string): XmlElement {
  const parser = new SaxesParser({ xmlns: true, position: false });
  const open: XmlElement[] = [{ namespace: "", local: "", children: [], text: "" }];
  const refuse = (why: string): never => {
    throw new Refusal(400, `the body is not XML that is understood here: ${why}`);
  };
  parser.on("error", ({ message }) => refuse(message));
  parser.on("doctype", () => refuse("it has a document type"));
  parser.on("opentag", ({ uri, local }) => {
    const element: XmlElement = { namespace: uri, local, children: [], text: "" };
    open.at(-1)!.children.push(element);
    if (open.push(element) > depthMax) refuse("too many elements are within each other");
  });
  parser.on("closetag", () => void open.pop());
  const add = (piece: string): void => void (open.at(-1)!.text += piece);
  parser.on("text", add);
  parser.on("cdata", add);
  parser.write(text).close();
  return open[0]!.children[0] ?? refuse("it is empty");
}

/** The first child of that name, in WebDAV's own namespace. */
export function childOf(element: XmlElement, local: string): XmlElement | undefined {
  return element.children.find((child) => child.namespace === davNamespace && child.local === local);
}

/** Text as it may stand in an element or in quotes. What XML cannot say at all becomes a replacement. */
export function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** An element of WebDAV's own namespace; its content is XML already. */
export function dav(local: string, ...content: readonly string[]): string {
  return content.length === 0 ? `<D:${local}/>` : `<D:${local}>${content.join("")}</D:${local}>`;
}

/** An empty element of any namespace. */
export function named({ namespace, local }: XmlName): string {
  return namespace === davNamespace ? dav(local) : `<X:${local} xmlns:X="${escaped(namespace)}"/>`;
}

export const xmlHead = '<?xml version="1.0" encoding="utf-8"?>\n';

/** The outermost element of an answer, open. */
export function openRoot(local: string): string {
  return `${xmlHead}<D:${local} xmlns:D="${davNamespace}">`;
}
