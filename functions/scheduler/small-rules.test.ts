/** Rules of single plugins, and the texts of what they reject. */
import { describe, expect, it } from 'vitest';
import { listedAmounts, NO_AMOUNTS } from '../../shared/scheduling/requests.rule.ts';
import type { NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { availability, countedReasons, eventNote } from './failure-message.rule.ts';
import { balancedAllocationScore, imageLocalityScore, leastAllocatedScore, resourcesFilter } from './resources.rule.ts';

describe('the message of a pod that fits nowhere', () => {
  it('counts reasons in the order of their texts', () => {
    const counts = new Map([
      ['b', 2],
      ['a', 10],
      ['c', 2],
    ]);
    expect(countedReasons(counts)).toBe(' 10 a, 2 b, 2 c.');
    expect(availability(14, counts)).toBe('0/14 nodes are available: 10 a, 2 b, 2 c.');
    expect(availability(3, new Map())).toBe('0/3 nodes are available:');
  });

  it('is at most 1,024 bytes in an event', () => {
    const longest = 'x'.repeat(1_024);
    expect(eventNote(longest)).toBe(longest);
    expect(eventNote(`${longest}x`)).toBe(`${'x'.repeat(1_020)} ...`);
    const wide = eventNote('ü'.repeat(600));
    expect(wide).toBe(`${'ü'.repeat(510)} ...`);
    expect(eventNote('ü'.repeat(512))).toBe('ü'.repeat(512));
  });
});

describe('an image on a node', () => {
  const MEBI = 1_024 * 1_024;
  const score = (bytes: number | undefined, more: { nodes?: number; having?: number; containers?: number } = {}) => {
    const { nodes = 1, having = 1, containers = 1 } = more;
    const images = new Map(bytes === undefined ? [] : [['i', bytes]]);
    const snapshot = { nodes: { size: nodes }, nodesWithImage: () => having } as unknown as Snapshot;
    const pod = { images: ['i', 'absent'], containers } as unknown as SchedulablePod;
    return imageLocalityScore(pod, { node: { images } } as unknown as NodeState, snapshot);
  };

  it.each([
    [undefined, {}, 0],
    [23 * MEBI, {}, 0],
    [1_000 * MEBI, {}, 100],
    [5_000 * MEBI, {}, 100],
    [511.5 * MEBI, {}, 50],
    [1_000 * MEBI, { nodes: 4, having: 2 }, 48],
    [1_000 * MEBI, { containers: 2 }, 49],
    [1_000 * MEBI, { containers: 0 }, 100],
  ])('of %s bytes, with %j, scores %i', (bytes, more, expected) => {
    expect(score(bytes, more)).toBe(expected);
  });
});

describe('the resources of a node', () => {
  const NONE = { cpu: 0, memory: 0, ephemeralStorage: 0, scalars: {} };
  const state = (allocatable: object, more: object = {}) =>
    ({
      node: { allocatable: { ...NONE, ...allocatable }, podsMax: 2 },
      pods: new Map([['one', {}]]),
      used: { ...NONE, cpu: 30, memory: 40 },
      scoredCpu: 30,
      scoredMemory: 40,
      ...more,
    }) as unknown as NodeState;
  const pod = (cpu: number, memory: number) =>
    ({ requests: { ...NONE, cpu, memory }, scored: { cpu, memory } }) as unknown as SchedulablePod;

  it.each([
    [70, 60, undefined],
    [71, 60, { reasons: ['Insufficient cpu'], isResolvable: true }],
    [71, 61, { reasons: ['Insufficient cpu', 'Insufficient memory'], isResolvable: true }],
    [100, 60, { reasons: ['Insufficient cpu'], isResolvable: true }],
    [101, 60, { reasons: ['Insufficient cpu'], isResolvable: false }],
  ])('hold a pod of %i and %i: %j', (cpu, memory, rejection) => {
    const found = resourcesFilter(pod(cpu, memory))(state({ cpu: 100, memory: 100 }));
    expect(found).toEqual(rejection === undefined ? undefined : { plugin: 'NodeResourcesFit', ...rejection });
  });

  it('have a bounded number of reasons against a pod that requests thousands of resources', () => {
    const list = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`a.b/c${1_999 - index}`, '1']));
    const scalars = { ...listedAmounts(list).scalars, 'a.b/c0': 1 };
    const many = { requests: { ...NO_AMOUNTS, scalars } } as unknown as SchedulablePod;
    const found = resourcesFilter(many)(state({ ...NO_AMOUNTS, scalars: { 'a.b/c0': 1 } }));
    expect(found).toMatchObject({ isResolvable: false });
    expect(found?.reasons).toHaveLength(64);
    expect(found?.reasons.slice(0, 2)).toEqual(['Insufficient a.b/c1', 'Insufficient a.b/c10']);
  });

  it('hold as many pods as the node accepts', () => {
    const full = state(
      { cpu: 100, memory: 100 },
      {
        pods: new Map([
          ['a', {}],
          ['b', {}],
        ]),
      },
    );
    expect(resourcesFilter(pod(1, 1))(full)?.reasons).toEqual(['Too many pods']);
    expect(resourcesFilter(pod(71, 1))(full)).toMatchObject({ reasons: ['Too many pods', 'Insufficient cpu'] });
  });

  it.each([
    [{ cpu: 100, memory: 100 }, 10, 10, 55],
    [{ cpu: 100, memory: 100 }, 70, 60, 0],
    [{ cpu: 100, memory: 100 }, 71, 10, 25],
    [{ cpu: 100 }, 10, 10, 60],
    [{ memory: 100 }, 10, 10, 50],
    [{}, 10, 10, 0],
    [{ cpu: 33, memory: 43 }, 1, 1, 5],
  ])('of %j score by what is left after %i and %i: %i', (allocatable, cpu, memory, score) => {
    expect(leastAllocatedScore(pod(cpu, memory), state(allocatable))).toBe(score);
  });

  it.each([
    [{ cpu: 100, memory: 100 }, 0, 0, 75],
    [{ cpu: 100, memory: 100 }, 10, 0, 77],
    [{ cpu: 100, memory: 100 }, 0, 60, 60],
    [{ cpu: 0, memory: 100 }, 10, 10, 75],
    [{ cpu: 100, memory: 0 }, 10, 10, 75],
    [{ cpu: 100, memory: 100 }, 500, 500, 77],
  ])('of %j score by their balance after %i and %i: %i', (allocatable, cpu, memory, score) => {
    expect(balancedAllocationScore(pod(cpu, memory), state(allocatable))).toBe(score);
  });
});
