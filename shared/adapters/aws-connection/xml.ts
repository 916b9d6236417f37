/**
 * Reads the XML that EC2 answers: elements, text, character references. Strict where it matters: a document that ends
 * early or does not nest is refused, so that half an answer never passes for a whole one. No DTDs, no processing.
 */
export interface XmlElement {
  readonly name: string;
  /** Text directly inside, character references resolved. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

export class XmlError extends Error {
  override readonly name = 'XmlError';
}

interface OpenElement {
  name: string;
  text: string;
  children: OpenElement[];
}

/** Declaration, comment, CDATA, closing tag, opening tag, text: one of them at a time. */
const TOKEN =
  /<\?[^?]*\?>|<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<\/([A-Za-z_][\w:.-]*)\s*>|<([A-Za-z_][\w:.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;
const DEPTH_MAX = 64;

/** The root element. Throws XmlError. */
export function parseXml(document: string): XmlElement {
  const top: OpenElement = { name: '', text: '', children: [] };
  const open = [top];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < document.length) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(document);
    if (token === null) throw new XmlError(`not XML at character ${at}`);
    const [, data, closing, opening, , selfClosing, text] = token;
    const current = open.at(-1)!;
    if (closing !== undefined) {
      if (open.length === 1 || current.name !== closing) throw new XmlError(`</${closing}> closes nothing`);
      open.pop();
    } else if (opening !== undefined) {
      if (open.length > DEPTH_MAX) throw new XmlError('elements nest too deep');
      const element: OpenElement = { name: opening, text: '', children: [] };
      current.children.push(element);
      if (selfClosing === '') open.push(element);
    } else if (data !== undefined) current.text += data;
    else if (text !== undefined) current.text += resolveReferences(text);
  }
  if (open.length !== 1) throw new XmlError(`ends inside <${open.at(-1)!.name}>`);
  const [root, ...others] = top.children;
  if (root === undefined || others.length > 0 || top.text.trim() !== '') throw new XmlError('not one root element');
  return root;
}

const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

const resolveReferences = (text: string): string =>
  text.replace(/&(#x[0-9a-fA-F]+|#\d+|\w+);/g, (whole, name: string) => {
    if (!name.startsWith('#')) return NAMED[name] ?? whole;
    const code = name.startsWith('#x') ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });

export const childOf = (element: XmlElement | undefined, name: string): XmlElement | undefined =>
  element?.children.find((child) => child.name === name);

export const textOf = (element: XmlElement | undefined, name: string): string | undefined =>
  childOf(element, name)?.text;

/** The `item`s of a set; undefined when there is no such set. */
export const itemsOf = (element: XmlElement | undefined, name: string): readonly XmlElement[] | undefined =>
  childOf(element, name)?.children.filter((child) => child.name === 'item');
