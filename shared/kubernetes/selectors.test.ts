import { describe, expect, it } from 'vitest';
import { leases } from '../kinds/leases/serve.ts';
import { nodes } from '../kinds/nodes/serve.ts';
import { parseFieldSelector, parseLabelSelector, selectorFromSpec, unsupportedField } from './selectors.ts';

function labelSelector(text: string) {
  const selector = parseLabelSelector(text);
  if (selector.kind !== 'parsed') throw new Error(selector.message);
  return selector;
}

function fieldSelector(text: string) {
  const selector = parseFieldSelector(text);
  if (selector.kind !== 'parsed') throw new Error(selector.message);
  return selector;
}

const fleet = {
  one: { zone: 'a', tier: 'web' },
  two: { zone: 'b', tier: 'web' },
  three: { zone: 'c' },
  four: undefined,
  five: { rank: '20', 'example.org/in': '' },
};
const selected = (text: string): string[] => {
  const selector = labelSelector(text);
  return Object.entries(fleet)
    .filter(([, labels]) => selector.matches(labels))
    .map(([name]) => name);
};

describe('label selectors', () => {
  it.each([
    ['', ['one', 'two', 'three', 'four', 'five']],
    ['zone=a', ['one']],
    ['zone==b,tier=web', ['two']],
    ['zone!=a', ['two', 'three', 'four', 'five']],
    ['zone in (a,c)', ['one', 'three']],
    ['zone in ( a , c )', ['one', 'three']],
    ['zone notin (a,b)', ['three', 'four', 'five']],
    ['zone', ['one', 'two', 'three']],
    ['!zone', ['four', 'five']],
    ['zone,!tier', ['three']],
    ['example.org/in', ['five']],
    ['example.org/in=', ['five']],
    ['example.org/in in (,x)', ['five']],
    ['zone=', []],
    ['rank>9', ['five']],
    ['rank<9', []],
    ['zone in (a),tier notin (db),!rank', ['one']],
  ])('%j selects %j', (text, names) => {
    expect(selected(text)).toEqual(names);
  });

  it('accepts operator names as keys and values', () => {
    expect(labelSelector('in in (notin)').requirements).toEqual([{ key: 'in', operator: 'in', values: ['notin'] }]);
  });

  it.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a,', "found '', expected: identifier after ','"],
    ['=a', "found '=', expected: !, identifier, or 'end of string'"],
    ['a=b)', "found ')', expected: ',' or 'end of string'"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    [
      'a>x',
      "unable to parse requirement: <nil>: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    ],
  ])('refuses %j', (text, message) => {
    expect(parseLabelSelector(text)).toEqual({ kind: 'malformed', message });
  });

  it('refuses keys and values that no object could have', () => {
    expect(parseLabelSelector('b@d=x')).toMatchObject({
      kind: 'malformed',
      message: expect.stringContaining('name part'),
    });
    expect(parseLabelSelector('a=b@d')).toMatchObject({ kind: 'malformed', message: expect.stringContaining('"b@d"') });
  });
});

describe('selectors in object form', () => {
  it('selects everything when empty and nothing when absent', () => {
    expect(selectorFromSpec({}).matches({ a: 'b' })).toBe(true);
    expect(selectorFromSpec(undefined).matches({ a: 'b' })).toBe(false);
  });

  it('joins labels and expressions', () => {
    const selector = selectorFromSpec({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['a', 'b'] },
        { key: 'old', operator: 'DoesNotExist' },
      ],
    });
    expect(selector.matches({ app: 'web', tier: 'a' })).toBe(true);
    expect(selector.matches({ app: 'web', tier: 'a', old: '' })).toBe(false);
    expect(selector.matches({ app: 'web', tier: 'c' })).toBe(false);
  });
});

describe('field selectors', () => {
  const pod: Record<string, string> = { 'spec.nodeName': 'kw-1', 'status.phase': 'Running', 'metadata.name': 'a,b=c' };
  const read = (field: string): string => pod[field] ?? '';

  it.each([
    ['', true],
    ['spec.nodeName=kw-1,status.phase!=Succeeded,status.phase!=Failed', true],
    ['spec.nodeName==kw-2', false],
    ['spec.nodeName!=kw-1', false],
    ['involvedObject.namespace=', true],
    ['metadata.name=a\\,b\\=c', true],
  ])('%j matches: %s', (text, verdict) => {
    expect(fieldSelector(text).matches(read)).toBe(verdict);
  });

  it('returns the value that a field must have', () => {
    const selector = fieldSelector('metadata.name=kw-1,spec.unschedulable!=true');
    expect(selector.exact('metadata.name')).toBe('kw-1');
    expect(selector.exact('spec.unschedulable')).toBeUndefined();
  });

  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: ='],
    ['a=\\x', 'invalid field selector: invalid escape sequence: \\x'],
  ])('refuses %j', (text, message) => {
    expect(parseFieldSelector(text)).toEqual({ kind: 'malformed', message });
  });

  it('names the field a resource does not select by', () => {
    expect(unsupportedField(fieldSelector('metadata.name=a'), nodes)).toBeUndefined();
    expect(unsupportedField(fieldSelector('spec.podCIDR=10.0.0.0/24'), nodes)).toBe(
      'field label not supported: spec.podCIDR',
    );
    expect(unsupportedField(fieldSelector('spec.holderIdentity=a'), leases)).toBe(
      '"spec.holderIdentity" is not a known field selector: only "metadata.name", "metadata.namespace"',
    );
  });
});
