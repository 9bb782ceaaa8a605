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

/** The limit of nesting: requests of WebDAV have five levels. */
const depthMax = 32;

/**
 * Parses the body of a request. Document types are refused, so that no entity can expand or refer elsewhere.
 *
 * @throws Refusal 400
 */
export function parseXml(text: string): XmlElement {
  const parser = new SaxesParser({ xmlns: true, position: false });
  const open: XmlElement[] = [{ namespace: "", local: "", children: [], text: "" }];
  const refuse = (why: string): never => {
    throw new Refusal(400, `the body is not valid XML: ${why}`);
  };
  parser.on("error", ({ message }) => refuse(message));
  parser.on("doctype", () => refuse("document types are not allowed"));
  parser.on("opentag", ({ uri, local }) => {
    const element: XmlElement = { namespace: uri, local, children: [], text: "" };
    open.at(-1)!.children.push(element);
    if (open.push(element) > depthMax) refuse("elements are nested too deeply");
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

/** Escapes text for an element or an attribute. Characters that XML cannot represent are replaced. */
export function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** An element of WebDAV's own namespace with XML content. */
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
