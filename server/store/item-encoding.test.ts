import { describe, expect, it } from 'vitest';
import type { Item } from '../../shared/store/item-store.ts';
import { decodeItem, EncodingError, encodeItem } from './item-encoding.ts';

const roundTrip = (item: Item): Item => decodeItem(encodeItem(item), 'p', 's');

describe('an encoded item', () => {
  it('is JSON text without its keys', () => {
    expect(encodeItem({ pk: 'p', sk: 's', n: 1, list: ['a', true] })).toBe('{"n":1,"list":["a",true]}');
  });

  it('keeps bytes at every depth, in order, empty ones and Buffers too', () => {
    const item: Item = {
      first: Uint8Array.of(1, 0, 255),
      map: { inner: [Uint8Array.of(), { deep: Uint8Array.of(7) }], text: 'ä' },
      last: Uint8Array.from({ length: 70_000 }, (_, index) => index % 256),
    };
    expect(roundTrip({ ...item, buffer: Buffer.from('as bytes') })).toEqual({
      ...item,
      buffer: new Uint8Array(Buffer.from('as bytes')),
      pk: 'p',
      sk: 's',
    });
  });

  it('keeps texts that UTF-8 or SQL cannot have, and names of prototypes', () => {
    const item: Item = { nul: 'a\0b', half: '\ud800', quote: `'"`, map: JSON.parse('{"__proto__":1}') };
    expect(roundTrip(item)).toEqual({ ...item, pk: 'p', sk: 's' });
  });

  it('is frozen when it is decoded', () => {
    const item = roundTrip({ map: { list: [1] }, bytes: Uint8Array.of(1) });
    expect(() => (item['map'] as { list: number[] }).list.push(2)).toThrow(TypeError);
    expect(() => {
      item['more'] = 1;
    }).toThrow(TypeError);
  });

  it('is refused when it is cut off or something else', () => {
    const bytes = encodeItem({ bytes: Uint8Array.of(1, 2, 3) }) as Uint8Array;
    for (const damaged of [bytes.subarray(0, bytes.length - 1), bytes.subarray(0, 3), '{"n":', 7, null]) {
      expect(() => decodeItem(damaged, 'p', 's')).toThrow(EncodingError);
    }
  });
});
