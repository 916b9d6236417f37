import { createHash } from 'node:crypto';
import { inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { StoreFault } from './item-store.ts';
import {
  isExpired,
  type LoggedChange,
  logAttributes,
  logEntries,
  nodeNameOf,
  OBJECT_DICTIONARY_1,
  objectOf,
  objectText,
  packObjectText,
  packText,
  previousText,
  refOf,
  unpackText,
} from './object-record.ts';

const selectable = (labels: Record<string, string>, fields: Record<string, string> = {}) => ({ labels, fields });

function logged(name: string, resourceVersion: number, more: Partial<LoggedChange> = {}): LoggedChange {
  const text = objectText({ metadata: { name, resourceVersion: '1' } });
  const stored = packObjectText(text);
  return { type: 'MODIFIED', key: `ns/${name}`, resourceVersion, text, stored, previous: undefined, ...more };
}

const change = (name: string, resourceVersion: number, more: object = {}) => ({
  type: 'MODIFIED',
  resourceVersion,
  ref: { resource: 'things', namespace: 'ns', name },
  object: { metadata: { name, resourceVersion: String(resourceVersion) } },
  ...more,
});

describe('an item of the change log', () => {
  const previous = previousText(selectable({ app: 'a' }), selectable({ app: 'b' }));
  const before = { previous: selectable({ app: 'a' }) };
  const read = (changes: readonly LoggedChange[]) =>
    logEntries('things', logAttributes(changes, 77)).map((entry) => entry.change());

  it.each([undefined, previous])('has one change, with what selectors saw before: %s', (text) => {
    expect(read([logged('a', 5, { previous: text })])).toEqual([change('a', 5, text === undefined ? {} : before)]);
  });

  it('has all changes of a commit in their order, under the last version', () => {
    const changes = [logged('a', 5), logged('b"', 6, { type: 'DELETED' }), logged('c', 9, { previous })];
    expect(logAttributes(changes, 77)).toMatchObject({ rv: 9, ttl: 77 });
    expect(logEntries('things', logAttributes(changes, 77)).map((entry) => entry.resourceVersion)).toEqual([5, 6, 9]);
    expect(read(changes)).toEqual([change('a', 5), change('b"', 6, { type: 'DELETED' }), change('c', 9, before)]);
  });

  it('is damaged without the attributes of a change', () => {
    const { t: _, ...damaged } = logAttributes([logged('a', 5)], 77);
    expect(() => logEntries('things', damaged)[0]!.change()).toThrow('a row without t');
    expect(() => objectOf({ o: '{"metadata":{}}' })).toThrow('a row without rv');
  });
});

describe('what selectors saw before a change', () => {
  it('is kept in order of its names, if it differs', () => {
    const one = selectable({ b: '2', a: '1', c: '3' }, { y: '2', x: '1' });
    expect(previousText(one, selectable({}))).toBe('{"labels":{"a":"1","b":"2","c":"3"},"fields":{"x":"1","y":"2"}}');
    expect(previousText(one, selectable({ c: '3', a: '1', b: '2' }, { x: '1', y: '2' }))).toBeUndefined();
    expect(previousText(one, { ...one, fields: {} })).toBeDefined();
  });
});

it('an object is stored without its version, which has an attribute', () => {
  const object = { metadata: { name: 'a', resourceVersion: '5', labels: {} }, spec: { n: 1 } };
  expect(JSON.parse(objectText(object))).toEqual({ metadata: { name: 'a', labels: {} }, spec: { n: 1 } });
  expect(objectOf({ o: objectText(object), rv: 5 })).toEqual(object);
});

it.each([
  [{}, 5_000, false],
  [{ ttl: 5 }, 4_999, false],
  [{ ttl: 5 }, 5_000, true],
])('%j has expired at %i ms: %s', (item, nowMs, expected) => {
  expect(isExpired(item, nowMs)).toBe(expected);
});

it.each([
  ['a', '', 'a'],
  ['ns/a', 'ns', 'a'],
  ['ns/a/b', 'ns', 'a/b'],
])('the sort key %s is of the namespace %j and the name %s', (key, namespace, name) => {
  expect(refOf('things', key)).toEqual({ resource: 'things', namespace, name });
});

it.each([
  ['pods', { nodeName: 'n1' }, 'n1'],
  ['pods', { nodeName: '' }, undefined],
  ['pods', {}, undefined],
  ['pods', undefined, undefined],
  ['things', { nodeName: 'n1' }, undefined],
])('one of the %s with the spec %j is bound to %s', (resource, spec, expected) => {
  expect(nodeNameOf(resource, { metadata: {}, ...(spec !== undefined && { spec }) } as never)).toBe(expected);
  expect(nodeNameOf(resource, undefined)).toBeUndefined();
});

vi.mock('node:zlib', { spy: true });

const LONG = JSON.stringify({ kind: 'Node', status: { text: 'x'.repeat(2_000) } });

let forgotten = 0;
/** Two texts that are more than all that are kept. */
function forgetKept(): void {
  for (let text = 0; text < 2; text += 1) {
    forgotten += 1;
    packObjectText(`${forgotten}`.padEnd(2_500_000, ' '));
  }
}

describe('a compressed text', () => {
  it('is read back as it was written, whatever it was', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', minLength: 600, maxLength: 900 }),
      fc.json().map((text) => text.repeat(40)),
    );
    fc.assert(
      fc.property(fc.array(texts, { minLength: 20, maxLength: 20 }), (some) => {
        const packed = some.map(packObjectText);
        expect(packed.map(unpackText)).toEqual(some);
        forgetKept();
        expect(packed.map(unpackText)).toEqual(some);
      }),
      { numRuns: 5 },
    );
  });

  it('with half of a character is read as UTF-8 has it, whether it is kept or not', () => {
    const packed = packObjectText(`${LONG}\ud800`);
    expect([unpackText(packed), unpackText(packed)]).toEqual([`${LONG}\ufffd`, `${LONG}\ufffd`]);
  });

  it('stays a string if it is short', () => {
    expect(packObjectText('x'.repeat(700))).toBe('x'.repeat(700));
    expect(packObjectText(LONG)).toBeInstanceOf(Uint8Array);
  });

  it('depends on a dictionary that never changes', () => {
    const hash = createHash('sha256').update(OBJECT_DICTIONARY_1).digest('hex');
    expect(hash).toBe('835a79d24d2fb7ef63cc49e49f6c77217eff0984de0d9bdb3b6c431842bd62f6');
    expect(OBJECT_DICTIONARY_1.length).toBeLessThan(32_768);
  });

  it('is that of its own bytes, however often and in whatever order texts are read', () => {
    const textOf = (index: number) => LONG.replace('xx', `x${index}`);
    const packed = Array.from({ length: 20 }, (_, index) => packObjectText(textOf(index)));
    for (const order of [packed, packed.toReversed(), packed]) {
      for (const stored of order) expect(unpackText(stored)).toBe(textOf(packed.indexOf(stored)));
    }
    // The bytes of a text may be a part of a larger buffer, and later be overwritten.
    const buffer = new Uint8Array(2_000);
    for (const [index, stored] of packed.entries()) {
      buffer.set(stored as Uint8Array, 7);
      expect(unpackText(buffer.subarray(7, 7 + stored.length))).toBe(textOf(index));
    }
  });

  it('is not decompressed while it is kept, and once after many other texts', () => {
    const inflate = vi.mocked(inflateRawSync);
    inflate.mockClear();
    const packed = packObjectText(LONG);
    unpackText(packed);
    expect(inflate).not.toHaveBeenCalled();
    forgetKept();
    for (let time = 0; time < 3; time += 1) expect(unpackText(packed)).toBe(LONG);
    expect(inflate).toHaveBeenCalledTimes(1);
  });

  it('of an object is not displaced by texts of other records', () => {
    forgetKept();
    const packed = packObjectText(LONG);
    for (const record of ['a', 'b']) packText(record.padEnd(2_500_000, ' '));
    const inflate = vi.mocked(inflateRawSync);
    inflate.mockClear();
    expect(unpackText(packed)).toBe(LONG);
    expect(inflate).not.toHaveBeenCalled();
  });

  it('is refused when a newer release wrote it, or when it is damaged', () => {
    const packed = packObjectText(LONG) as Uint8Array;
    const refused = (stored: Uint8Array): unknown => {
      try {
        return unpackText(stored);
      } catch (fault) {
        return fault;
      }
    };
    for (const stored of [Uint8Array.of(2, ...packed.subarray(1)), packed.subarray(0, -4), new Uint8Array()]) {
      const fault = refused(stored);
      expect(fault).toBeInstanceOf(StoreFault);
      expect(fault).toMatchObject({ code: 'rejected', retryable: false });
    }
  });
});
