import { describe, expect, it } from 'vitest';
import {
  isExpired,
  type LoggedChange,
  logAttributes,
  logEntries,
  nodeNameOf,
  objectOf,
  objectText,
  previousText,
  refOf,
} from './object-record.ts';
import { packObjectText } from './packed-text.ts';

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
