import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { itemsOf, parseXml, textOf, type XmlElement, XmlError } from './xml.ts';

const DOCUMENT = `<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<R xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <set><item><id>i-1</id><empty/></item><item><id a='b'>i-2</id></item></set>
  <text>1 &lt; 2 &amp; &#51; &gt; &#x32; &quot;&apos;</text><raw><![CDATA[<&>]]></raw>
</R>
`;

describe('XML of EC2', () => {
  it('reads elements, sets, text and references', () => {
    const root = parseXml(DOCUMENT);
    expect(root.name).toBe('R');
    expect(itemsOf(root, 'set')?.map((item) => textOf(item, 'id'))).toEqual(['i-1', 'i-2']);
    expect(textOf(root, 'text')).toBe('1 < 2 & 3 > 2 "\'');
    expect(textOf(root, 'raw')).toBe('<&>');
    expect(itemsOf(root, 'none')).toBeUndefined();
    expect(textOf(root, 'none')).toBeUndefined();
  });

  it('refuses every document that is cut before its end', () => {
    const whole = DOCUMENT.trim();
    for (let length = 0; length < whole.length; length += 1) {
      expect(() => parseXml(whole.slice(0, length)), `at ${length}`).toThrow(XmlError);
    }
  });

  it.each([
    ['<a></b>'],
    ['<a/><b/>'],
    ['text'],
    ['<a>1</a>more'],
    ['{"not": "XML"}'],
    ['<!DOCTYPE html><html></html>'],
    ['</a>'],
  ])('refuses %s', (document) => {
    expect(() => parseXml(document)).toThrow(XmlError);
  });

  /** An element as the reader returns it, and one of the ways to write it. */
  const { element } = fc.letrec<{ element: readonly [XmlElement, string] }>((tie) => ({
    element: fc
      .record({
        name: fc.constantFrom('a', 'b-2', 'ns:c'),
        text: fc.string({ unit: fc.constantFrom('x', ' ', '<', '&', '"', ']', 'é', '😀'), maxLength: 6 }),
        style: fc.constantFrom('named', 'decimal', 'hexadecimal', 'data'),
        children: fc.oneof(
          { maxDepth: 3 },
          fc.constant<(readonly [XmlElement, string])[]>([]),
          fc.array(tie('element'), { maxLength: 3 }),
        ),
      })
      .map(({ name, text, style, children }) => {
        const inside = children.map(([, written]) => `<!-- <${name}> -->${written}`).join('');
        return [
          { name, text, children: children.map(([read]) => read) },
          `<${name} k='>'>${written(text, style)}${inside}</${name} >`,
        ];
      }),
  }));

  function written(text: string, style: string): string {
    const reference = (character: string): string => {
      const code = character.codePointAt(0) ?? 0;
      if (style === 'named') return { '<': '&lt;', '&': '&amp;', '"': '&quot;' }[character] ?? character;
      return style === 'decimal' ? `&#${code};` : `&#x${code.toString(16)};`;
    };
    return style === 'data'
      ? `<![CDATA[${text.replaceAll(']', ']]]><![CDATA[')}]]>`
      : [...text].map(reference).join('');
  }

  it('reads whatever is written, and refuses it cut anywhere', () => {
    fc.assert(
      fc.property(element, fc.nat(), ([read, document], at) => {
        expect(parseXml(document)).toEqual(read);
        expect(() => parseXml(document.slice(0, at % document.length))).toThrow(XmlError);
      }),
      { seed: 20_261_122, numRuns: 300 },
    );
  });

  it('answers any sequence of tokens with an element or an XmlError', () => {
    const token = fc.constantFrom(
      ...['<a>', '</a>', '<a/>', '<', '>', '/', '&', ';', '"', '=', ' ', 'text', '<!--', '-->', '<![CDATA[', ']]>'],
      ...['<?xml?>', '&lt;', '&none;', '&#0;', '&#1114111;', '&#1114112;', '&#x7fffffffffff;', '&#;', '&#x;'],
    );
    const outcomes = { read: 0, refused: 0 };
    fc.assert(
      fc.property(fc.array(token, { maxLength: 6 }), fc.boolean(), (tokens, isInside) => {
        const document = isInside ? `<a>${tokens.join('')}</a>` : tokens.join('');
        try {
          expect(parseXml(document).name).toBe('a');
          outcomes.read += 1;
        } catch (error) {
          if (!(error instanceof XmlError)) throw error;
          outcomes.refused += 1;
        }
      }),
      { seed: 20_261_122, numRuns: 1_000 },
    );
    // Neither of the two is a rarity.
    expect(Math.min(outcomes.read, outcomes.refused)).toBeGreaterThan(100);
  });
});
