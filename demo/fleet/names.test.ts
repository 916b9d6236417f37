import { describe, expect, it } from 'vitest';
import { globMatcher, nameMachines, selectNames } from './names.ts';

describe('naming a fleet', () => {
  it('deals machines round the zones and counts from 0 in each', () => {
    const machines = nameMachines(5, ['eu-a', 'eu-b']);
    expect(machines.map(({ name, zone }) => `${name} ${zone}`)).toEqual([
      'edge-a-0 eu-a',
      'edge-b-0 eu-b',
      'edge-a-1 eu-a',
      'edge-b-1 eu-b',
      'edge-a-2 eu-a',
    ]);
  });

  it('refuses a fleet without zones', () => {
    expect(() => nameMachines(1, [])).toThrow('1 to 26 zones');
  });
});

describe('picking by glob', () => {
  it.each([
    ['edge-a-*', 'edge-a-12', true],
    ['edge-a-*', 'edge-b-1', false],
    ['edge-?-1', 'edge-c-1', true],
    ['edge-a-[0-4]', 'edge-a-3', true],
    ['edge-a-[0-4]', 'edge-a-5', false],
    ['edge-[!a]-0', 'edge-b-0', true],
    ['edge-[!a]-0', 'edge-a-0', false],
    ['edge-a-1', 'edge-a-10', false],
    ['edge.a', 'edgexa', false],
    ['edge-[', 'edge-[', true],
  ])('%s against %s is %s', (glob, name, matches) => {
    expect(globMatcher(glob)(name)).toBe(matches);
  });

  it('names each machine once and reports the globs that match none', () => {
    expect(selectNames(['a*', 'a1', 'z'], ['a1', 'a2', 'b'])).toEqual({ selected: ['a1', 'a2'], unmatched: ['z'] });
  });
});
