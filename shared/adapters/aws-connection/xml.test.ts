import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { itemsOf, parseXml, textOf, XmlError } from './xml.ts';

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

  it('answers anything at all with an element or an XmlError', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('<', '>', '/', 'a', '&', ';', '"', '=', ' ', '!', '-', '?') }),
        (text) => {
          try {
            parseXml(text);
          } catch (error) {
            expect(error).toBeInstanceOf(XmlError);
          }
        },
      ),
    );
  });
});
