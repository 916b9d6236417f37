import { describe, expect, it } from 'vitest';
import { compileFilters } from './filter.ts';

const matches = (pattern: unknown, event: unknown) => compileFilters([JSON.stringify(pattern)], 'test')(event);

const record = {
  eventName: 'MODIFY',
  dynamodb: {
    Keys: { pk: { S: 'health#03' } },
    NewImage: { suspect: { N: '1' }, zone: { S: 'eu-a' }, first: { BOOL: true }, tags: { SS: ['a', 'b'] } },
  },
};

const image = (rule: unknown) => ({ dynamodb: { NewImage: rule } });

describe('event filters', () => {
  it('lets everything through without a pattern', () => {
    expect(compileFilters([], 'test')(record)).toBe(true);
  });

  it.each([
    ['equality', { eventName: ['MODIFY'] }, true],
    ['equality of another value', { eventName: ['INSERT'] }, false],
    ['one of several values', { eventName: ['INSERT', 'MODIFY'] }, true],
    ['a nested key', { dynamodb: { Keys: { pk: { S: ['health#03'] } } } }, true],
    ['all fields of a pattern', { eventName: ['MODIFY'], ...image({ zone: { S: ['eu-b'] } }) }, false],
    ['prefix', { dynamodb: { Keys: { pk: { S: [{ prefix: 'health#' }] } } } }, true],
    ['prefix of something else', { dynamodb: { Keys: { pk: { S: [{ prefix: 'node#' }] } } } }, false],
    ['suffix', { dynamodb: { Keys: { pk: { S: [{ suffix: '#03' }] } } } }, true],
    ['equality whatever the case', image({ zone: { S: [{ 'equals-ignore-case': 'EU-A' }] } }), true],
    ['a number, which is a text', image({ suspect: { N: ['1'] } }), true],
    ['a number as a number, which DynamoDB never writes', image({ suspect: { N: [1] } }), false],
    ['numeric on a number of DynamoDB', image({ suspect: { N: [{ numeric: ['>', 0] }] } }), false],
    ['a boolean', image({ first: { BOOL: [true] } }), true],
    ['any element of a list', image({ tags: { SS: ['b'] } }), true],
    ['exists on a leaf', image({ suspect: { N: [{ exists: true }] } }), true],
    ['exists on an attribute, which is no leaf', image({ suspect: [{ exists: true }] }), false],
    ['absence of an attribute', image({ excluded: { BOOL: [{ exists: false }] } }), true],
    ['absence of an attribute that is there', image({ suspect: { N: [{ exists: false }] } }), false],
    ['absence under a missing parent', { dynamodb: { OldImage: { zone: { S: [{ exists: false }] } } } }, true],
    ['a value under a missing parent', { dynamodb: { OldImage: { zone: { S: ['eu-a'] } } } }, false],
    ['anything but', image({ zone: { S: [{ 'anything-but': ['eu-b', 'eu-c'] }] } }), true],
    ['anything but this one', image({ zone: { S: [{ 'anything-but': 'eu-a' }] } }), false],
    ['anything but a prefix', image({ zone: { S: [{ 'anything-but': { prefix: 'eu-' } }] } }), false],
    ['anything but, on an absent field', image({ rack: { S: [{ 'anything-but': 'x' }] } }), false],
    ['alternatives inside a pattern', { $or: [{ eventName: ['REMOVE'] }, image({ first: { BOOL: [true] } })] }, true],
  ])('matches %s', (_name, pattern, expected) => {
    expect(matches(pattern, record)).toBe(expected);
  });

  it('matches null and numbers of a plain event', () => {
    const event = { body: { a: null, n: 5 } };
    expect(matches({ body: { a: [null] } }, event)).toBe(true);
    expect(matches({ body: { a: [{ exists: true }] } }, event)).toBe(true);
    expect(matches({ body: { n: [null] } }, event)).toBe(false);
    expect(matches({ body: { n: [{ numeric: ['>', 0, '<=', 5] }] } }, event)).toBe(true);
    expect(matches({ body: { n: [{ numeric: ['<', 5] }] } }, event)).toBe(false);
    expect(matches({ body: { n: [5] } }, event)).toBe(true);
  });

  it('treats several patterns as alternatives', () => {
    const filter = compileFilters(['{"eventName":["INSERT"]}', '{"eventName":["MODIFY"]}'], 'test');
    expect(filter(record)).toBe(true);
    expect(filter({ eventName: 'REMOVE' })).toBe(false);
  });

  it.each([['nonsense'], ['[]'], ['{"a":[{"wildcard":"x*"}]}'], ['{"a":"b"}'], ['{"a":[{"numeric":["~",1]}]}']])(
    'refuses %s, naming the mapping',
    (pattern) => {
      expect(() => compileFilters([pattern], 'HealthMapping')).toThrow(/^HealthMapping: /);
    },
  );
});
