/** Rules of the scheduler that its suites reach only through whole decisions: amounts, affinity to nodes, taints. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubePod } from '../kinds/types.ts';
import {
  matchesNodeAffinity,
  namedNodes,
  nodeAffinityScore,
  nodeTermMatches,
  preferNoScheduleTaints,
  taintFilter,
  toleratesTaints,
  unschedulableFilter,
} from './node-match.rule.ts';
import {
  amountOf,
  comparedAmounts,
  listedAmounts,
  NO_AMOUNTS,
  plus,
  requestsOf,
  scoredRequestsOf,
} from './requests.rule.ts';
import { compiledSelector, compiledTerm, includesNamespace, termMatches } from './terms.rule.ts';
import type { SchedulableNode, SchedulablePod } from './world.rule.ts';

const MEBI = 1_024 * 1_024;

describe('an amount', () => {
  it.each([
    ['cpu', '2', 2_000],
    ['cpu', '250m', 250],
    ['cpu', '0.5', 500],
    ['cpu', '1u', 1],
    ['cpu', '1Ki', 1_024_000],
    ['memory', '1000', 1_000],
    ['memory', '1Ki', 1_024],
    ['memory', '3Mi', 3 * MEBI],
    ['memory', '1Gi', 1_024 * MEBI],
    ['memory', '1500m', 2],
    ['memory', '2000m', 2],
    ['memory', '1k', 1_000],
    ['memory', '12345678901', 12_345_678_901],
    ['memory', '-1', -1],
    ['memory', 'x', 0],
    ['memory', '', 0],
    ['memory', 7, 7],
  ] as const)('of %s, written %j, is %i', (name, text, amount) => {
    expect(amountOf(name, text)).toBe(amount);
  });
});

const container = (requests: object | undefined, more: object = {}) => ({
  name: 'c',
  resources: { requests },
  ...more,
});
const spec = (more: object, status: object = {}): KubePod =>
  ({ metadata: {}, spec: { containers: [], ...more }, status }) as KubePod;

describe('the requests of a pod', () => {
  it('are the sum of its containers, or its largest init container', () => {
    const containers = [container({ cpu: '1', memory: '10' }), container({ cpu: '1' }), { name: 'none' }];
    expect(requestsOf(spec({ containers }))).toEqual({ ...NO_AMOUNTS, cpu: 2_000, memory: 10 });
    const initContainers = [container({ cpu: '500m', memory: '30' }), container({ cpu: '3', memory: '20' })];
    expect(requestsOf(spec({ containers, initContainers }))).toEqual({ ...NO_AMOUNTS, cpu: 3_000, memory: 30 });
  });

  it('have sidecars beside the containers, and beside the init containers that start later', () => {
    const sidecar = (cpu: string) => container({ cpu }, { restartPolicy: 'Always' });
    const cpu = (...initContainers: object[]) =>
      requestsOf(spec({ containers: [container({ cpu: '1' })], initContainers })).cpu;
    expect(cpu(sidecar('2'))).toBe(3_000);
    expect(cpu(sidecar('2'), container({ cpu: '4' }))).toBe(6_000);
    expect(cpu(container({ cpu: '4' }), sidecar('2'))).toBe(4_000);
    expect(cpu(sidecar('2'), sidecar('3'))).toBe(6_000);
  });

  it('of the pod itself replace those of its containers, and its overhead is added', () => {
    const pod = spec({
      containers: [container({ cpu: '1', memory: '10', 'ephemeral-storage': '5', 'hugepages-2Mi': '4Mi' })],
      resources: { requests: { cpu: '3', memory: '1', 'ephemeral-storage': '99', 'hugepages-2Mi': '8Mi' } },
      overhead: { cpu: '100m', memory: '7' },
    });
    expect(requestsOf(pod)).toEqual({
      ...{ cpu: 3_100, memory: 8, ephemeralStorage: 5, scalars: { 'hugepages-2Mi': 8 * MEBI } },
    });
  });

  it('count with a default where a container has none, for scores', () => {
    const scored = (...containers: object[]) => scoredRequestsOf(spec({ containers }));
    expect(scored(container(undefined))).toEqual({ cpu: 100, memory: 200 * MEBI });
    expect(scored(container({ cpu: '0', memory: '0' }))).toEqual({ cpu: 0, memory: 0 });
    expect(scored(container({ cpu: '1' }), { name: 'd' })).toEqual({ cpu: 1_100, memory: 400 * MEBI });
  });

  describe('while they are changed', () => {
    const reported = (requests: object, allocatedResources: object, name = 'c') => ({
      ...{ name, allocatedResources, resources: { requests } },
    });
    const pending = (reason: string) => ({ conditions: [{ type: 'PodResizePending', status: 'True', reason }] });
    const wanted = { containers: [container({ cpu: '2', memory: '10' })] };
    const resources = reported({ cpu: '1', memory: '30' }, { cpu: '1500m', memory: '20' });
    const cpuAndMemory = (pod: KubePod) => [requestsOf(pod).cpu, requestsOf(pod).memory];

    it('are the highest of those wanted, promised and in effect', () => {
      const containerStatuses = [resources];
      expect(cpuAndMemory(spec(wanted, { containerStatuses }))).toEqual([2_000, 30]);
      expect(cpuAndMemory(spec(wanted, { containerStatuses, ...pending('Deferred') }))).toEqual([2_000, 30]);
      expect(scoredRequestsOf(spec(wanted, { containerStatuses }))).toEqual({ cpu: 2_000, memory: 30 });
    });

    it('leave out those wanted where the node can never do it', () => {
      const status = { containerStatuses: [resources], ...pending('Infeasible') };
      expect(cpuAndMemory(spec(wanted, status))).toEqual([1_500, 30]);
    });

    it('are those wanted of a container without a report of its resources', () => {
      const { resources: _none, ...promised } = resources;
      for (const containerStatuses of [[], [{ ...resources, name: 'd' }], [promised]]) {
        expect(cpuAndMemory(spec(wanted, { containerStatuses, ...pending('Infeasible') }))).toEqual([2_000, 10]);
      }
    });

    it('read the report of each container a few times, however many there are', () => {
      const names = Array.from({ length: 100 }, (_, index) => `c${index}`);
      let reads = 0;
      const containerStatuses = names.map((name) => ({
        ...reported({ cpu: '2' }, { cpu: '2' }),
        get name() {
          reads += 1;
          return name;
        },
      }));
      const pod = spec({ containers: names.map((name) => container({ cpu: '1' }, { name })) }, { containerStatuses });
      expect(requestsOf(pod).cpu).toBe(200_000);
      expect(reads).toBeLessThanOrEqual(2 * names.length);
    });

    it('count the report of a sidecar, and not of another init container', () => {
      const status = { initContainerStatuses: [reported({ cpu: '4' }, { cpu: '4' }, 's')] };
      const cpu = (more: object) =>
        requestsOf(spec({ ...wanted, initContainers: [container({ cpu: '3' }, { name: 's', ...more })] }, status)).cpu;
      expect(cpu({ restartPolicy: 'Always' })).toBe(6_000);
      expect(cpu({})).toBe(3_000);
    });
  });

  it('have every resource of a node or of a vendor, and no other one', () => {
    const list = { 'hugepages-1Gi': '1', 'attachable-volumes-x': '2', 'example.com/gpu': '3', pods: '110', other: '4' };
    expect(listedAmounts({ ...list, cpu: '1' })).toEqual({
      ...NO_AMOUNTS,
      cpu: 1_000,
      scalars: { 'hugepages-1Gi': 1, 'attachable-volumes-x': 2, 'example.com/gpu': 3 },
    });
    expect(listedAmounts(undefined)).toEqual(NO_AMOUNTS);
  });

  it('added and subtracted again leave what was there', () => {
    const amounts = fc.record({
      cpu: fc.nat(9),
      memory: fc.nat(9),
      ephemeralStorage: fc.nat(9),
      scalars: fc.dictionary(fc.constantFrom('a/x', 'a/y'), fc.nat(9)),
    });
    fc.assert(
      fc.property(amounts, amounts, (one, other) => {
        const sum = plus(one, other);
        expect(sum).toMatchObject({ cpu: one.cpu + other.cpu, memory: one.memory + other.memory });
        expect(sum.ephemeralStorage).toBe(one.ephemeralStorage + other.ephemeralStorage);
        for (const name of ['a/x', 'a/y']) {
          expect(sum.scalars[name] ?? 0).toBe((one.scalars[name] ?? 0) + (other.scalars[name] ?? 0));
        }
        const back = plus(sum, other, -1);
        expect(back).toMatchObject({ ...one, scalars: expect.objectContaining(one.scalars) });
      }),
    );
  });

  it('are compared with what a node has, where there are any', () => {
    const wanted = { cpu: 1, memory: 0, ephemeralStorage: 2, scalars: { 'a/x': 4, 'b/x': 3, 'c/x': 0 } };
    const offered = { cpu: 10, memory: 20, ephemeralStorage: 30, scalars: { 'a/x': 40 } };
    const used = { cpu: 5, memory: 6, ephemeralStorage: 7, scalars: { 'a/x': 8, 'b/x': 9 } };
    expect([...comparedAmounts(wanted, offered, used)]).toEqual([
      { name: 'cpu', requested: 1, allocatable: 10, used: 5 },
      { name: 'ephemeral-storage', requested: 2, allocatable: 30, used: 7 },
      { name: 'a/x', requested: 4, allocatable: 40, used: 8 },
      { name: 'b/x', requested: 3, allocatable: 0, used: 9 },
    ]);
    expect([...comparedAmounts({ ...NO_AMOUNTS, memory: 1 }, offered, used)]).toEqual([
      { name: 'memory', requested: 1, allocatable: 20, used: 6 },
    ]);
  });
});

describe('a term of node affinity', () => {
  const node = { name: 'n1', labels: { zone: 'a', size: '10', empty: '' } };
  const expression = (key: string, operator: string, values?: string[]) => ({
    matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }],
  });
  const field = (operator: string, values: string[], key = 'metadata.name') => ({
    matchFields: [{ key, operator, values }],
  });

  it.each([
    [expression('zone', 'In', ['a', 'b']), true],
    [expression('zone', 'In', ['b']), false],
    [expression('absent', 'In', ['b']), false],
    [expression('zone', 'In'), false],
    [expression('zone', 'NotIn', ['a']), false],
    [expression('zone', 'NotIn', ['b']), true],
    [expression('absent', 'NotIn', ['b']), true],
    [expression('empty', 'Exists'), true],
    [expression('absent', 'Exists'), false],
    [expression('constructor', 'Exists'), false],
    [expression('absent', 'DoesNotExist'), true],
    [expression('zone', 'DoesNotExist'), false],
    [expression('size', 'Gt', ['9']), true],
    [expression('size', 'Gt', ['10']), false],
    [expression('size', 'Gt', ['+9']), true],
    [expression('size', 'Lt', ['11']), true],
    [expression('size', 'Lt', ['10']), false],
    [expression('zone', 'Gt', ['1']), false],
    [expression('size', 'Gt', ['x']), false],
    [expression('size', 'Gt', ['+-9']), false],
    [expression('size', 'Gt', ['-0009']), true],
    [expression('size', 'Lt', ['0010']), false],
    [expression('size', 'Lt', ['0011']), true],
    [expression('size', 'Gt', ['-9223372036854775808']), true],
    [expression('size', 'Gt', ['-9223372036854775809']), false],
    [expression('size', 'Gt'), false],
    [expression('size', 'Other', ['10']), false],
    [field('In', ['n1']), true],
    [field('In', ['n2']), false],
    [field('In', ['n1', 'n2']), false],
    [field('NotIn', ['n2']), true],
    [field('NotIn', ['n1']), false],
    [field('Exists', ['n2']), false],
    [field('In', ['n1'], 'metadata.uid'), false],
    [{ ...expression('zone', 'Exists'), ...field('In', ['n2']) }, false],
    [{ ...expression('absent', 'Exists'), ...field('In', ['n1']) }, false],
    [{ matchExpressions: [...expression('zone', 'Exists').matchExpressions, { key: 'x', operator: 'Exists' }] }, false],
    [{}, false],
  ])('%j matches: %s', (term, isMatched) => {
    expect(nodeTermMatches(term as never, node)).toBe(isMatched);
  });

  it('compares a number that fills its pod with each node at once', () => {
    const term = expression('size', 'Lt', ['9'.repeat(380_000)]);
    for (let nodes = 0; nodes < 200; nodes += 1) expect(nodeTermMatches(term as never, node)).toBe(false);
  }, 5_000);

  const [yes, no] = [field('In', ['n1']), field('In', ['n2'])] as never[];
  it.each([
    [{}, undefined, true],
    [{ zone: 'a' }, undefined, true],
    [{ zone: 'b' }, undefined, false],
    [{ zone: 'a', absent: 'x' }, undefined, false],
    [{}, [], false],
    [{}, [no, yes], true],
    [{}, [no], false],
    [{ zone: 'b' }, [yes], false],
  ])('with the selector %j and the terms %j: %s', (nodeSelector, nodeTerms, isMatched) => {
    expect(matchesNodeAffinity({ nodeSelector, nodeTerms } as never, node)).toBe(isMatched);
  });

  it('adds its weight to the score of a node that it matches', () => {
    const preferred = (weight: number, preference: unknown) => ({ weight, preference });
    const pod = { preferredNodeTerms: [preferred(3, yes), preferred(5, no), preferred(0, yes), preferred(4, yes)] };
    expect(nodeAffinityScore(pod as never, node as unknown as SchedulableNode)).toBe(7);
  });

  it.each([
    [undefined, undefined],
    [[], undefined],
    [[yes], ['n1']],
    [
      [yes, no],
      ['n1', 'n2'],
    ],
    [[yes, expression('zone', 'Exists')], undefined],
    [[field('NotIn', ['n1'])], undefined],
    [[field('In', ['n1'], 'metadata.uid')], undefined],
    [[{ matchFields: [{ key: 'metadata.name', operator: 'In' }] }], []],
    [
      [
        {
          matchFields: [
            { key: 'metadata.name', operator: 'In', values: ['n1', 'n2'] },
            ...field('In', ['n2']).matchFields,
          ],
        } as never,
      ],
      ['n2'],
    ],
  ] as [unknown, string[] | undefined][])('%j can match only the nodes %j', (nodeTerms, names) => {
    const found = namedNodes({ nodeTerms } as SchedulablePod);
    expect(found === undefined ? undefined : [...found]).toEqual(names);
  });
});

describe('a taint', () => {
  const taint = (effect: string, key = 'k') => ({ key, value: 'v', effect });
  const node = (...taints: object[]) => ({ taints, isUnschedulable: false }) as unknown as SchedulableNode;
  const pod = (...tolerations: object[]) => ({ tolerations }) as unknown as SchedulablePod;
  const tolerating = (more: object = {}) => pod({ key: 'k', operator: 'Exists', ...more });

  it.each([
    ['NoSchedule', pod(), false],
    ['NoExecute', pod(), false],
    ['PreferNoSchedule', pod(), true],
    ['NoSchedule', tolerating(), true],
    ['NoSchedule', tolerating({ effect: 'NoExecute' }), false],
    ['NoExecute', tolerating({ tolerationSeconds: 1 }), true],
    ['NoSchedule', pod({ key: 'k', operator: 'Lt', value: 'v' }), false],
    ['NoSchedule', pod({ key: 'k', operator: 'Gt', value: 'v' }), false],
    ['NoSchedule', pod({ key: 'k', operator: 'Equal', value: 'v' }), true],
  ])('%s is tolerated by %j: %s', (effect, by, isTolerated) => {
    expect(toleratesTaints(by, node(taint(effect)))).toBe(isTolerated);
    expect(taintFilter(by)({ node: node(taint(effect)) } as never) === undefined).toBe(isTolerated);
  });

  it('of a node that runs no images has a reason of its own, unless the pod knows it', () => {
    const reasons = (by: SchedulablePod, ...taints: object[]) =>
      taintFilter(by)({ node: node(...taints) } as never)?.reasons[0];
    const runtime = taint('NoSchedule', 'nodekeeper.dev/runtime');
    expect(reasons(pod(), runtime)).toMatch(/^node\(s\) run processes, not images/);
    expect(reasons(pod({ key: runtime.key, operator: 'Equal', value: 'x' }), runtime)).toMatch(
      /untolerated taint\(s\)$/,
    );
    expect(reasons(pod(), taint('NoSchedule'))).toBe('node(s) had untolerated taint(s)');
  });

  it.each([
    [pod(), 2],
    [tolerating(), 1],
    [tolerating({ effect: 'PreferNoSchedule' }), 1],
    [tolerating({ effect: 'NoSchedule' }), 2],
    [pod({ operator: 'Exists' }), 0],
  ])('that is a preference counts for %j in %i', (by, count) => {
    const taints = [taint('PreferNoSchedule'), taint('PreferNoSchedule', 'other'), taint('NoSchedule')];
    expect(preferNoScheduleTaints(by, node(...taints))).toBe(count);
  });

  it('of a cordon is tolerated by a pod that tolerates unschedulable nodes', () => {
    const passes = (by: SchedulablePod, isUnschedulable: boolean) =>
      unschedulableFilter(by)({ node: { ...node(), isUnschedulable } } as never) === undefined;
    const by = pod({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' });
    expect([passes(pod(), true), passes(pod(), false), passes(by, true)]).toEqual([false, true, true]);
  });
});

describe('a term of pod affinity', () => {
  const labels = new Map([
    ['a', { team: 'x' }],
    ['b', { team: 'y' }],
  ]);
  const term = (more: object) =>
    compiledTerm({ topologyKey: 'zone', labelSelector: { matchLabels: { app: 'w' } }, ...more } as never, {
      namespace: 'own',
      labels: { version: '1', app: 'w' },
    });

  it.each([
    [{}, ['own']],
    [{ namespaces: [] }, ['own']],
    [{ namespaces: ['a', 'c'] }, ['a', 'c']],
    [{ namespaceSelector: { matchLabels: { team: 'x' } } }, ['a']],
    [{ namespaceSelector: {} }, ['own', 'a', 'b', 'c']],
    [{ namespaces: ['b'], namespaceSelector: { matchLabels: { team: 'x' } } }, ['a', 'b']],
    [{ namespaceSelector: null }, ['own']],
  ])('%j is about the namespaces %j', (more, namespaces) => {
    const found = ['own', 'a', 'b', 'c'].filter((namespace) => includesNamespace(term(more), namespace, labels));
    expect(found).toEqual(namespaces);
  });

  it('matches a pod of its namespaces with its labels, and with the values of the keys that it names', () => {
    const matches = (more: object, pod: object, namespace = 'own') =>
      termMatches(term(more), { namespace, labels: pod as Record<string, string> }, labels);
    expect(matches({}, { app: 'w' })).toBe(true);
    expect(matches({}, { app: 'w' }, 'a')).toBe(false);
    expect(matches({}, { app: 'v' })).toBe(false);
    expect(matches({ matchLabelKeys: ['version'] }, { app: 'w', version: '1' })).toBe(true);
    expect(matches({ matchLabelKeys: ['version'] }, { app: 'w', version: '2' })).toBe(false);
    expect(matches({ mismatchLabelKeys: ['version'] }, { app: 'w', version: '1' })).toBe(false);
    expect(matches({ mismatchLabelKeys: ['version'] }, { app: 'w', version: '2' })).toBe(true);
    expect(matches({ matchLabelKeys: ['absent'] }, { app: 'w' })).toBe(true);
    expect(matches({ labelSelector: undefined }, { app: 'w' })).toBe(false);
    expect(matches({ labelSelector: {} }, { app: 'v' })).toBe(true);
  });

  it('has the same text as another one if and only if it selects the same pods', () => {
    const texts = [
      {},
      { namespaces: ['a'] },
      { namespaceSelector: {} },
      { labelSelector: {} },
      { matchLabelKeys: ['version'] },
    ];
    expect(new Set(texts.map((more) => term(more).text)).size).toBe(texts.length);
    expect(term({ namespaces: ['b', 'a'] }).text).toBe(term({ namespaces: ['a', 'b'] }).text);
    expect(term({ topologyKey: 'other' }).text).toBe(term({}).text);
    expect(compiledSelector({ matchLabels: {} }, { labels: {} }).text).toBe(compiledSelector({}, { labels: {} }).text);
    expect(compiledSelector(undefined, { labels: {} }).matches({})).toBe(false);
  });
});
