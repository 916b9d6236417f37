/** Writes XML as EC2 does: lists as `item` elements, absent values left out. */
export type XmlValue =
  | string
  | number
  | boolean
  | undefined
  | readonly XmlValue[]
  | { readonly [name: string]: XmlValue };

export function xmlElement(name: string, value: XmlValue, namespace?: string): string {
  if (value === undefined) return '';
  const open = namespace === undefined ? `<${name}>` : `<${name} xmlns="${namespace}">`;
  return `${open}${contentOf(value)}</${name}>`;
}

function contentOf(value: XmlValue): string {
  if (Array.isArray(value)) return value.map((item: XmlValue) => xmlElement('item', item)).join('');
  if (typeof value === 'object') {
    return Object.entries(value)
      .map(([name, child]) => xmlElement(name, child as XmlValue))
      .join('');
  }
  return escapeText(String(value));
}

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
