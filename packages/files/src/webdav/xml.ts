import { SaxesParser } from "saxes";
import { Refusal } from "./refusal.js";

export const davNamespace = "DAV:";

export interface XmlName {
  readonly namespace: string;
  readonly local: string;
}

export interface XmlElement extends XmlName {
  readonly attributes: readonly (XmlName & { readonly value: string })[];
  /** The value of `xml:lang` in effect here. */
  readonly language: string;
  readonly children: XmlElement[];
  /** Text and children, in order. */
  readonly content: (string | XmlElement)[];
  text: string;
}

/** The limit of nesting. WebDAV requests have five levels. */
const depthMax = 32;

/**
 * Parses the body of a request. Document types are refused, so that no entity can expand or refer to anything
 * external.
 * @throws Refusal 400
 */
export function parseXml(text: string): XmlElement {
  const parser = new SaxesParser({ xmlns: true, position: false });
  const nothing = { attributes: [], language: "", children: [], content: [], text: "" };
  const open: XmlElement[] = [{ ...nothing, namespace: "", local: "" }];
  const refuse = (why: string): never => {
    throw new Refusal(400, `the body is not valid XML: ${why}`);
  };
  parser.on("error", ({ message }) => refuse(message));
  parser.on("doctype", () => refuse("document types are not allowed"));
  parser.on("opentag", ({ uri, local, attributes: given }) => {
    const parent = open.at(-1)!;
    const attributes = Object.values(given).map((each) => ({
      namespace: each.uri,
      local: each.local,
      value: each.value,
    }));
    const language = attributes.find((each) => isLanguage(each))?.value ?? parent.language;
    const element = { ...nothing, namespace: uri, local, attributes, language, children: [], content: [] };
    parent.children.push(element);
    parent.content.push(element);
    if (open.push(element) > depthMax) refuse("elements are nested too deeply");
  });
  parser.on("closetag", () => void open.pop());
  const add = (piece: string): void => {
    const element = open.at(-1)!;
    element.text += piece;
    element.content.push(piece);
  };
  parser.on("text", add);
  parser.on("cdata", add);
  parser.write(text).close();
  return open[0]!.children[0] ?? refuse("it is empty");
}

/** The first child with that name in WebDAV's namespace. */
export function childOf(element: XmlElement, local: string): XmlElement | undefined {
  return element.children.find((child) => child.namespace === davNamespace && child.local === local);
}

/** Escapes text for an element or attribute. Characters that XML cannot represent are replaced. */
export function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** An element in WebDAV's namespace with XML content. */
export function dav(local: string, ...content: readonly string[]): string {
  return content.length === 0 ? `<D:${local}/>` : `<D:${local}>${content.join("")}</D:${local}>`;
}

/** An element in any namespace with XML content. */
export function named({ namespace, local }: XmlName, content = "", language = ""): string {
  if (namespace === davNamespace && language === "") return content === "" ? dav(local) : dav(local, content);
  const lang = language === "" ? "" : ` xml:lang="${escaped(language)}"`;
  // A prefix cannot stand for "no namespace".
  const [name, space] = namespace === "" ? [local, "xmlns"] : [`X:${local}`, "xmlns:X"];
  const tag = `${name} ${space}="${escaped(namespace)}"${lang}`;
  return content === "" ? `<${tag}/>` : `<${tag}>${content}</${name}>`;
}

const xmlnsNamespace = "http://www.w3.org/2000/xmlns/";
const xmlNamespace = "http://www.w3.org/XML/1998/namespace";

function isLanguage({ namespace, local }: XmlName): boolean {
  return namespace === xmlNamespace && local === "lang";
}

/** The content of an element as XML that means the same in any context. */
export function innerXml({ content }: XmlElement): string {
  return content.map((each) => (typeof each === "string" ? escaped(each) : outerXml(each))).join("");
}

function outerXml(element: XmlElement): string {
  const { namespace, local, attributes } = element;
  const written = attributes
    .filter((each) => each.namespace !== xmlnsNamespace)
    .map((each, at) => {
      const value = `="${escaped(each.value)}"`;
      if (each.namespace === "") return ` ${each.local}${value}`;
      if (each.namespace === xmlNamespace) return ` xml:${each.local}${value}`;
      return ` xmlns:a${at}="${escaped(each.namespace)}" a${at}:${each.local}${value}`;
    });
  const inner = innerXml(element);
  return `<${local} xmlns="${escaped(namespace)}"${written.join("")}>${inner}</${local}>`;
}

export const xmlHead = '<?xml version="1.0" encoding="utf-8"?>\n';

/** The start tag of an answer's root element. */
export function openRoot(local: string): string {
  return `${xmlHead}<D:${local} xmlns:D="${davNamespace}">`;
}
