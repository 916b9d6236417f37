/** Areas TM, TN, TX, TC, TB, TA, TD, TO and TS: the topology manager. */
import { describe, expect, it } from 'vitest';
import type { Container } from '../../../agent/rules/pod-containers.ts';
import { type Allocated, admitTopology, type HintProvider } from '../../../agent/rules/topology/admission.ts';
import {
  type Axis,
  axesOf,
  type Hint,
  keepHint,
  type MergedHint,
  type ProviderHints,
  targetCount,
} from '../../../agent/rules/topology/hint.ts';
import {
  averageDistance,
  closerMask,
  type Distances,
  maskOf,
  narrowerMask,
  nodeIdsOf,
} from '../../../agent/rules/topology/mask.ts';
import { startTopology, type TopologyRequest } from '../../../agent/rules/topology/options.ts';
import { decideTopology, type TopologySettings } from '../../../agent/rules/topology/policy.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';

/** `{0,1}+`, `{0}-`, `any+` */
function hint(text: string): Hint {
  const mask = text.startsWith('any') ? undefined : maskOf(numbers(text.slice(1, text.indexOf('}'))));
  return { mask, preferred: text.endsWith('+') };
}
const numbers = (text: string): number[] => (text === '' ? [] : text.split(',').map(Number));
const shown = ({ mask, preferred }: Hint): string =>
  `${mask === undefined ? 'any' : `{${nodeIdsOf(mask).join(',')}}`}${preferred ? '+' : '-'}`;

/** Providers are separated by ‖, resources of one by ; — ∅ says nothing, `unset` is no list, [] an empty one. */
function providers(text: string): ProviderHints[] {
  if (text === '') return [];
  return text.split(' ‖ ').map((provider) => {
    if (provider === '∅') return undefined;
    return new Map(
      provider.split(' ; ').map((resource) => {
        const [name = '', list = ''] = resource.split(': ');
        if (list === 'unset') return [name, undefined];
        return [name, list === '[]' ? [] : list.split(' ').map(hint)];
      }),
    );
  });
}

const ALL_FOUR = maskOf([0, 1, 2, 3]);

function distanceRows(...rows: number[][]): Distances {
  return new Map(rows.map((row, from) => [from, new Map(row.map((distance, to) => [to, distance]))]));
}
const FOUR_NODES = distanceRows([10, 11, 12, 12], [11, 10, 12, 12], [12, 12, 10, 11], [12, 12, 11, 10]);
const EIGHT_NODES = distanceRows(
  [10, 11, 12, 12, 30, 30, 30, 30],
  [11, 10, 12, 12, 30, 30, 30, 30],
  [12, 12, 10, 11, 30, 30, 30, 30],
  [12, 12, 11, 10, 30, 30, 30, 30],
  [30, 30, 30, 30, 10, 11, 12, 12],
  [30, 30, 30, 30, 11, 10, 12, 12],
  [30, 30, 30, 30, 12, 12, 10, 11],
  [30, 30, 30, 30, 12, 12, 13, 10],
);

const settings = (policy: TopologySettings['policy'], over: Partial<TopologySettings> = {}): TopologySettings => ({
  policy,
  scope: 'container',
  allNodes: ALL_FOUR,
  distances: undefined,
  ...over,
});
const decided = (given: TopologySettings, hints: string): string => {
  const { hint: merged, admit } = decideTopology(given, providers(hints));
  return `${shown(merged)} ${admit ? 'admit' : 'reject'}`;
};

describe('merging hints', () => {
  it.each([
    ['TM-01', 'r1: {0}+ ‖ r2: {0}+', '{0}+ admit', '{0}+ admit', '{0}+ admit'],
    ['TM-03', '∅ ‖ r1: {0}+', '{0}+ admit', '{0}+ admit', '{0}+ admit'],
    ['TM-05', 'r1: {0}+ {1}+ ‖ r2: {0}+', '{0}+ admit', '{0}+ admit', '{0}+ admit'],
    ['TM-07', 'r1: {0}+ {1}+ ‖ r2: {0}+ {0,1}-', '{0}+ admit', '{0}+ admit', '{0}+ admit'],
    ['TM-09', 'r1: {1}+ {0,1}- ; r2: {0}+ {1}+ {0,1}-', '{1}+ admit', '{1}+ admit', '{1}+ admit'],
    ['TM-11', '', '{0,1,2,3}+ admit', '{0,1,2,3}+ admit', 'any+ admit'],
    ['TM-13', 'r1: unset', '{0,1,2,3}+ admit', '{0,1,2,3}+ admit', 'any+ admit'],
    ['TM-15', 'r1: any+', '{0,1,2,3}+ admit', '{0,1,2,3}+ admit', 'any+ admit'],
    ['TM-17', 'r1: {0}+ ‖ r2: {1}+', '{0,1,2,3}- admit', '{0,1,2,3}- reject', 'any- reject'],
    ['TM-19', 'r1: {1}+ ‖ r2: {1}-', '{1}- admit', '{1}- reject', 'any- reject'],
    ['TM-21', 'r1: {1}+ ‖ r2: {0,1}+', '{1}- admit', '{1}- reject', 'any- reject'],
    ['TM-23', 'r1: {0,1,2,3}- {0,1}- ‖ r2: {0,1}-', '{0,1}- admit', '{0,1}- reject', 'any- reject'],
    ['TM-25', 'r1: {0,1,2,3}- {0,1}- ‖ r2: {1,2}-', '{1,2}- admit', '{1,2}- reject', 'any- reject'],
    ['TM-27', 'r1: {0,1,2,3}- {0,1}- ‖ r2: {1,2}- {2,3}-', '{1,2}- admit', '{1,2}- reject', 'any- reject'],
    ['TM-29', 'r1: {0,1}+ ; r2: {0}+ {1}+ {0,1}-', '{0,1}- admit', '{0,1}- reject', 'any- reject'],
    ['TM-31', 'r1: {2}+ {3}+ ‖ r2: {3}+ {2,3}- ‖ r3: {1}+ {3}+', '{3}+ admit', '{3}+ admit', '{3}+ admit'],
    ['TM-33', 'r1: {0}+ ‖ r2: []', '{0}- admit', '{0}- reject', 'any- reject'],
  ])('%s %s', (_id, hints, bestEffort, restricted, singleNode) => {
    expect(decided(settings('best-effort'), hints)).toBe(bestEffort);
    expect(decided(settings('restricted'), hints)).toBe(restricted);
    expect(decided(settings('single-numa-node'), hints)).toBe(singleNode);
  });

  it('has any node on a machine with one, under single-numa-node', () => {
    expect(decided(settings('single-numa-node', { allNodes: maskOf([0]) }), 'r1: {0}+')).toBe('any+ admit');
  });
});

describe('the closest nodes', () => {
  it.each([
    ['TX-01', 'r1: {0,4}+ {0,2}+ ‖ r2: {0,4}+ {0,2}+', '{0,2}+ admit', '{0,2}+ admit', '{0,2}+ admit'],
    ['TX-03', 'r1: {0,1,2,3}- {0,1}- ‖ r2: {1,2}- {2,3}-', '{2,3}- admit', '{2,3}- reject', '{1,2}- admit'],
    ['TX-05', 'r1: {0,5}+ {4,5}+ ‖ r2: {4,5}+ {0,5}+', '{4,5}+ admit', '{4,5}+ admit', '{0,5}+ admit'],
    ['TX-07', 'r1: {6,7}+ {0,1}+ ‖ r2: {6,7}+ {0,1}+', '{0,1}+ admit', '{0,1}+ admit', '{0,1}+ admit'],
  ])('%s %s', (_id, hints, bestEffort, restricted, optionOff) => {
    const allNodes = maskOf([0, 1, 2, 3, 4, 5, 6, 7]);
    const on = { allNodes, distances: EIGHT_NODES };
    expect(decided(settings('best-effort', on), hints)).toBe(bestEffort);
    expect(decided(settings('restricted', on), hints)).toBe(restricted);
    expect(decided(settings('best-effort', { allNodes }), hints)).toBe(optionOff);
  });
});

describe('one step of the choice', () => {
  it.each([
    ['TC-01', -1, undefined, '{}-', 'current'],
    ['TC-03', -1, undefined, '{0}+', 'candidate'],
    ['TC-05', -1, '{0}-', '{0}+', 'candidate'],
    ['TC-07', -1, '{0}+', '{0}+', 'current'],
    ['TC-09', -1, '{0}+', '{0,1}+', 'current'],
    ['TC-11', 1, '{1,2}-', '{0,1}-', 'candidate'],
    ['TC-13', 2, '{0,1}-', '{0}-', 'current'],
    ['TC-15', 2, '{1,2}-', '{0,1}-', 'candidate'],
    ['TC-17', 2, '{0}-', '{0,1,2}-', 'current'],
    ['TC-19', 3, '{0}-', '{0,1}-', 'candidate'],
    ['TC-21', 4, '{0,1}-', '{1,2,3}-', 'candidate'],
    ['TC-23', 4, '{0,1,2}-', '{0,1,2}-', 'current'],
    ['TC-25', 4, '{1,2,3}-', '{0,1,2}-', 'candidate'],
  ])('%s target %d: of %s and %s', (_id, target, current, candidate, kept) => {
    const before = current === undefined ? undefined : (hint(current) as MergedHint);
    const offered = hint(candidate) as MergedHint;
    expect(keepHint(target, before, offered, narrowerMask)).toBe(kept === 'current' ? before : offered);
  });
});

describe('the target count', () => {
  it.each([
    ['TB-01', '', 0],
    ['TB-03', 'r1: {0}+', 1],
    ['TB-05', 'r1: {0,1}+ {0,1,2}+', 2],
    ['TB-07', 'r1: {0,1}+ {0,1,2}+ ‖ r2: {0,1,2}+ {0,1,2,3}+', 3],
  ])('%s %s', (_id, hints, expected) => {
    const axes: Axis[] = axesOf(providers(hints));
    expect(targetCount(axes)).toBe(expected);
  });
});

describe('distances', () => {
  it.each([
    ['TA-01', [0], distanceRows([10]), 10],
    ['TA-03', [0, 1], distanceRows([10, 11], [11, 10]), 10.5],
    ['TA-05', [0, 2, 3], FOUR_NODES, 11.11111111111111],
    ['TA-07', [0, 1], distanceRows([10, 20], [30, 10]), 17.5],
  ])('%s nodes %j', (_id, ids, distances, expected) => {
    expect(averageDistance(maskOf(ids), distances)).toBeCloseTo(expected, 12);
  });

  const EQUAL = distanceRows([10, 10, 10, 10], [10, 10, 10, 10], [10, 10, 10, 10], [10, 10, 10, 10]);

  it.each([
    ['TD-01', [0], [0, 2], FOUR_NODES, [0]],
    ['TD-03', [0, 3], [0, 2], EQUAL, [0, 2]],
    ['TD-05', [2, 3], [0, 3], FOUR_NODES, [2, 3]],
    ['TD-07', [0, 1], [2, 3], FOUR_NODES, [0, 1]],
  ])('%s of %j and %j', (_id, current, candidate, distances, expected) => {
    expect(nodeIdsOf(closerMask(maskOf(current), maskOf(candidate), distances))).toEqual(expected);
  });
});

describe('start', () => {
  const asked = (over: Partial<TopologyRequest>): TopologyRequest => ({
    policy: 'best-effort',
    scope: 'container',
    options: {},
    nodeIds: [0, 1],
    distances: FOUR_NODES,
    ...over,
  });
  const refusal = (over: Partial<TopologyRequest>): string => {
    const start = startTopology(asked(over));
    return start.kind === 'refused' ? start.message : start.kind;
  };

  it('TO-01 more nodes than allowed', () => {
    expect(refusal({ nodeIds: [0, 1, 2, 3, 4, 5, 6, 7, 8] })).toBe(
      'unsupported on machines with more than 8 NUMA Nodes',
    );
  });
  it('TO-03 too low a limit', () => {
    expect(refusal({ options: { 'max-allowable-numa-nodes': '4' } })).toBe(
      'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
    );
  });
  it('TO-05 a limit that is no number', () => {
    expect(refusal({ options: { 'max-allowable-numa-nodes': 'x' } })).toMatch(
      /^unable to convert policy option to integer "max-allowable-numa-nodes"/,
    );
  });
  it('TO-07 an unknown option', () => {
    expect(refusal({ policy: 'restricted', options: { 'unknown-option': 'true' } })).toMatch(
      /unknown .*unknown-option/,
    );
  });
  it('TO-09 an unknown scope', () => {
    expect(refusal({ scope: 'unknown' })).toBe('unknown scope: "unknown"');
  });
  it('TO-11 distances that cannot be read', () => {
    expect(refusal({ options: { 'prefer-closest-numa-nodes': 'true' }, distances: undefined })).toContain(
      'error getting NUMA distances',
    );
  });

  it('allows more nodes if configured, with a warning', () => {
    const nodeIds = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    const start = startTopology(asked({ nodeIds, options: { 'max-allowable-numa-nodes': '9' } }));
    expect(start).toMatchObject({ kind: 'on', warnings: [expect.stringContaining('more than 8')] });
  });
  it('refuses an unknown policy, and an invalid boolean', () => {
    expect(refusal({ policy: 'sideways' })).toBe('unknown policy: "sideways"');
    expect(refusal({ options: { 'prefer-closest-numa-nodes': 'yes' } })).toMatch(
      /^bad value for option "prefer-closest-numa-nodes": /,
    );
  });
  it('reads nothing else under the policy none', () => {
    expect(refusal({ policy: 'none', scope: 'unknown', options: { x: 'y' } })).toBe('off');
  });
});

describe('admission', () => {
  const pod: KubeObject = {
    metadata: { name: 'p', uid: 'u' },
    spec: { initContainers: [{ name: 'i' }], containers: [{ name: 'a' }, { name: 'b' }] },
  };
  const twoNodes = (policy: TopologySettings['policy'], scope: 'container' | 'pod'): TopologySettings =>
    settings(policy, { scope, allNodes: maskOf([0, 1]) });

  class Provider implements HintProvider<string[]> {
    readonly asked: (string | undefined)[] = [];
    readonly #hints: ProviderHints;
    readonly #fails: string | undefined;

    constructor(hints: string, fails?: string) {
      this.#hints = providers(hints)[0];
      this.#fails = fails;
    }
    hints(_state: string[], _pod: KubeObject, container: Container | undefined): ProviderHints {
      this.asked.push(container?.name);
      return this.#hints;
    }
    allocate(state: string[], _pod: KubeObject, container: Container, given: Hint | undefined): Allocated<string[]> {
      if (this.#fails !== undefined) return { kind: 'failed', message: this.#fails };
      return { kind: 'allocated', state: [...state, `${container.name} ${given === undefined ? '' : shown(given)}`] };
    }
  }

  const MISPLACED = {
    kind: 'refused',
    reason: 'TopologyAffinityError',
    message: 'Resources cannot be allocated with Topology locality',
  };

  it('TN-01 asks no provider under the policy none, and still allocates', () => {
    const provider = new Provider('r: {0}+');
    const outcome = admitTopology(undefined, [provider], [], pod);
    expect(outcome).toEqual({ kind: 'admitted', state: ['i ', 'a ', 'b '], hints: new Map() });
    expect(provider.asked).toEqual([]);
  });

  it('TS-01 admits under the policy none', () => {
    expect(admitTopology(undefined, [], [], pod)).toMatchObject({ kind: 'admitted' });
  });

  it.each(['container', 'pod'] as const)('TS-03 admits without any provider, in the scope %s', (scope) => {
    expect(admitTopology(twoNodes('restricted', scope), [new Provider('∅')], [], pod).kind).toBe('admitted');
  });

  it('TS-05 admits what is not preferred under best-effort', () => {
    const scopes = ['container', 'pod'] as const;
    for (const scope of scopes) {
      const outcome = admitTopology(twoNodes('best-effort', scope), [new Provider('r: {0,1}-')], [], pod);
      expect(outcome.kind).toBe('admitted');
    }
  });

  it.each(['container', 'pod'] as const)('TS-07 admits one node of several in the scope %s', (scope) => {
    const provider = new Provider('r: {0}+ {1}+ {0,1}-');
    const outcome = admitTopology(twoNodes('restricted', scope), [provider], [], pod);
    expect(outcome).toMatchObject({ kind: 'admitted', state: ['i {0}+', 'a {0}+', 'b {0}+'] });
    expect(provider.asked).toEqual(scope === 'pod' ? [undefined] : ['i', 'a', 'b']);
  });

  it('TS-09 does not look at the QoS class', () => {
    const burstable = { ...pod, status: { qosClass: 'Burstable' } };
    expect(
      admitTopology(twoNodes('restricted', 'container'), [new Provider('r: {0,1}-')], [], burstable),
    ).toMatchObject(MISPLACED);
  });

  it('TS-11 reports an allocation that fails', () => {
    const outcome = admitTopology(twoNodes('best-effort', 'container'), [new Provider('r: {0}+', 'boom')], [], pod);
    expect(outcome).toEqual({
      kind: 'refused',
      reason: 'UnexpectedAdmissionError',
      message: 'Allocate failed due to boom, which is unexpected',
    });
  });
});
