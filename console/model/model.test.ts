import { describe, expect, it } from 'vitest';
import { defined } from '../../shared/defined.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { parseMetrics, sampleValue } from './metrics-text.ts';
import { byName, cellOf, cellText, letterOf, lookOf } from './node-cell.ts';
import { oldestPendingTitle } from './pods.ts';
import { type PodSummary, replacementsOf } from './replacements.ts';
import { whyNodesAreReadOnly } from './rights.ts';
import { beatsByProfile, costItems, intervalsText, pageDollarsPerDay } from './running-cost.ts';
import { sentenceParts, termIn } from './terms.ts';
import { rateText, zonesOf } from './zone-summary.ts';

interface NodeParts {
  readonly ready?: string;
  readonly spec?: KubeNode['spec'];
  readonly annotations?: Record<string, string>;
  /** Types of further conditions that are True. */
  readonly conditions?: readonly string[];
}

const node = (name: string, { ready = 'True', spec = {}, annotations, conditions = [] }: NodeParts = {}): KubeNode => ({
  metadata: { name, labels: { 'topology.kubernetes.io/zone': 'a' }, ...defined({ annotations }) },
  spec,
  status: {
    conditions: [
      { type: 'Ready', status: ready as 'True' },
      ...conditions.map((type) => ({ type, status: 'True' as const })),
    ],
  },
});

/** A node that announced its silence. */
const silent = (name: string, more: NodeParts = {}): KubeNode =>
  node(name, {
    annotations: {
      'nodekeeper.dev/planned-silence-until': '2026-01-01T18:00:00Z',
      'nodekeeper.dev/planned-silence-reason': 'new disk',
    },
    conditions: ['PlannedSilence'],
    ...more,
  });

describe('a cell', () => {
  it.each([
    ['True', {}, '', 'n: Ready'],
    ['True', { unschedulable: true }, 'C', 'n: Ready, cordoned'],
    ['False', {}, 'N', 'n: NotReady'],
    ['Unknown', { unschedulable: true }, 'U', 'n: Unknown, cordoned'],
    [
      'Unknown',
      { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' as const }] },
      'U',
      'n: Unknown, tainted: its pods have to leave',
    ],
    ['True', { taints: [{ key: 'gpu', effect: 'NoExecute' as const }] }, '', 'n: Ready'],
  ])('of a node with Ready %s and %j has the letter %j', (ready, spec, letter, text) => {
    const cell = cellOf(node('n', { ready, spec }));
    expect([letterOf(cell), cellText(cell)]).toEqual([letter, text]);
  });

  it.each([
    [silent('n'), 'P', 'n: Ready, planned silence until 2026-01-01T18:00:00Z (new disk)'],
    [silent('n', { ready: 'Unknown' }), 'P', 'n: Unknown, planned silence until 2026-01-01T18:00:00Z (new disk)'],
    // The promise has ended, and the annotation is still there.
    [silent('n', { conditions: [] }), '', 'n: Ready'],
    [silent('n', { annotations: {} }), 'P', 'n: Ready, planned silence'],
    [node('n', { conditions: ['Flapping'] }), 'F', 'n: Ready, flapping'],
    [node('n', { conditions: ['Flapping'], ready: 'Unknown' }), 'U', 'n: Unknown, flapping'],
    [node('n', { conditions: ['Flapping'], spec: { unschedulable: true } }), 'F', 'n: Ready, flapping, cordoned'],
    [node('n', { annotations: { 'nodekeeper.dev/profile': 'cell' } }), '', 'n: Ready, profile cell'],
    [node('n', { annotations: { 'nodekeeper.dev/profile': 'default' } }), '', 'n: Ready'],
  ])('shows planned silence, flapping and profile', (of, letter, text) => {
    const cell = cellOf(of);
    expect([letterOf(cell), cellText(cell)]).toEqual([letter, text]);
  });

  it('has another look for each letter', () => {
    const looks = [silent('n'), node('n'), node('n', { conditions: ['Flapping'] })].map((of) => lookOf(cellOf(of)));
    expect(looks).toEqual(['planned', 'ready', 'flapping']);
  });

  it('of a node without conditions is Unknown', () => {
    expect(cellOf({ metadata: { name: 'n' } }).state).toBe('Unknown');
  });

  it('is ordered by the numbers in its name', () => {
    const names = ['n-10', 'n-2', 'm-3'].map((name) => cellOf(node(name))).sort(byName);
    expect(names.map(({ name }) => name)).toEqual(['m-3', 'n-2', 'n-10']);
  });
});

describe('metrics', () => {
  it('are read with labels, escapes and exponents', () => {
    const samples = parseMetrics(
      '# HELP a b\na 1\nb{zone="x\\"y\\\\z",state="N"} 1.5e3\nb{zone="q"} 2 1700000000\n\n# EOF\n',
    );
    expect(sampleValue(samples, 'a')).toBe(1);
    expect(sampleValue(samples, 'b', { zone: 'x"y\\z' })).toBe(1_500);
    expect(sampleValue(samples, 'b', { zone: 'q' })).toBe(2);
    expect(sampleValue(samples, 'c')).toBeUndefined();
  });
});

describe('a zone', () => {
  const NOW_MS = Date.UTC(2026, 0, 1);
  const metrics = parseMetrics(
    [
      'nodekeeper_zone_state{zone="a",state="Normal"} 0',
      'nodekeeper_zone_state{zone="a",state="FullDisruption"} 1',
      'nodekeeper_queued_nodes{zone="a"} 2',
      'nodekeeper_zone_eviction_rate{zone="a"} 0.1',
      `nodekeeper_zone_next_token_timestamp_seconds{zone="a"} ${NOW_MS / 1_000 + 4}`,
    ].join('\n'),
  );
  const tainted = (minutes: number): KubeNode['spec'] => ({
    taints: [
      {
        key: 'node.kubernetes.io/unreachable',
        effect: 'NoExecute',
        timeAdded: new Date(NOW_MS - minutes * 60_000).toISOString(),
      },
    ],
  });

  it('counts its nodes and has what the controllers report', () => {
    const cells = [
      node('1'),
      node('2', { ready: 'False' }),
      node('3', { ready: 'Unknown', spec: tainted(59) }),
      node('4', { ready: 'Unknown', spec: tainted(61) }),
      silent('5'),
      silent('6', { ready: 'Unknown', conditions: ['PlannedSilence', 'Flapping'] }),
    ].map(cellOf);
    expect(zonesOf(cells, metrics, NOW_MS)).toEqual([
      {
        zone: 'a',
        cells,
        ready: 1,
        notReady: 1,
        unknown: 2,
        plannedSilence: cells.slice(4),
        flapping: cells.slice(5),
        taintedInHour: 1,
        state: 'FullDisruption',
        queued: 2,
        ratePerSecond: 0.1,
        nextTokenAtMs: NOW_MS + 4_000,
      },
    ]);
  });

  it('has a token when its time is over', () => {
    expect(zonesOf([cellOf(node('1'))], metrics, NOW_MS + 4_000)[0]?.nextTokenAtMs).toBeUndefined();
  });

  it.each([
    [0, 'no taints'],
    [0.1, 'one taint every 10 s'],
    [0.01, 'one taint every 100 s'],
    [1, 'one taint every 1 s'],
    [0.3, 'one taint every 3.3 s'],
  ])('describes the rate %f as %j', (rate, text) => {
    expect(rateText(rate)).toBe(text);
  });
});

describe('the right to change nodes', () => {
  const REFUSED = 'Your user may not patch nodes.';
  it.each([
    [[], REFUSED],
    [[{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], undefined],
    [[{ verbs: ['patch'], apiGroups: [''], resources: ['nodes'] }], undefined],
    [[{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }], REFUSED],
    [[{ verbs: ['patch'], apiGroups: [''], resources: ['nodes'], resourceNames: ['n1'] }], REFUSED],
    [[{ verbs: ['patch'], apiGroups: ['apps'], resources: ['nodes'] }], REFUSED],
  ])('of %j: %s', (rules, why) => {
    expect(whyNodesAreReadOnly(rules)).toBe(why);
  });
});

describe('replacements', () => {
  const pod = (name: string, owner: string, createdAtMs: number): PodSummary => ({
    namespace: 'd',
    name,
    phase: 'Running',
    node: 'n2',
    owner,
    createdAtMs,
    isTerminating: false,
    whyPending: '',
  });
  const evicted = (name: string, atMs: number) => ({ namespace: 'd', name, atMs });
  const pairs = (gone: Parameters<typeof replacementsOf>[0], pods: readonly PodSummary[]) =>
    replacementsOf(gone, pods).map(({ evicted: { name }, by }) => [name, by?.name]);

  it('pair each evicted pod with one later pod of its owner, in the order of time, the newest first', () => {
    const pods = [pod('w-1-bbbbb', 'w-1', 9_000), pod('w-1-ccccc', 'w-1', 11_000), pod('w-1-ddddd', 'w-1', 21_000)];
    expect(pairs([evicted('w-1-22222', 20_000), evicted('w-1-xxxxx', 10_500)], pods)).toEqual([
      ['w-1-22222', 'w-1-ddddd'],
      ['w-1-xxxxx', 'w-1-ccccc'],
    ]);
  });

  it('find the pod of a StatefulSet by its name', () => {
    expect(pairs([evicted('db-0', 10_000)], [pod('db-1', 'db', 12_000), pod('db-0', 'db', 13_000)])).toEqual([
      ['db-0', 'db-0'],
    ]);
  });

  it('are absent for a pod without an owner, and for another owner', () => {
    expect(pairs([evicted('solo', 10_000), evicted('x-bbbbb', 10_000)], [pod('y-bbbbb', 'y', 12_000)])).toEqual([
      ['x-bbbbb', undefined],
      ['solo', undefined],
    ]);
  });
});

it('an open page costs one held watch', () => {
  expect(pageDollarsPerDay(1)).toBeCloseTo(0.29, 2);
});

describe('the heartbeat intervals of the estimate', () => {
  const heartbeats = [
    { profile: 'cell', intervalSeconds: 60, graceSeconds: 240 },
    { profile: 'gpu', intervalSeconds: 15, graceSeconds: 60 },
    { profile: 'default', intervalSeconds: 15, graceSeconds: 60 },
  ];
  const nodes = [{ profile: undefined }, { profile: 'cell' }, { profile: 'cell' }, { profile: 'removed' }];

  it('are those of the profiles of the nodes', () => {
    const beats = beatsByProfile(nodes, heartbeats);
    expect(beats).toEqual([
      { profile: 'default', nodes: 2, intervalSeconds: 15 },
      { profile: 'cell', nodes: 2, intervalSeconds: 60 },
    ]);
    expect(intervalsText(beats, true)).toBe(
      'Heartbeats of the nodes by policy: 2 every 15 s (profile default), 2 every 60 s (profile cell).',
    );
    const heartbeatsOf = costItems(beats, 1).at(-1)!;
    const of10 = costItems([{ profile: 'default', nodes: 1, intervalSeconds: 10 }], 1).at(-1)!;
    // 2 ÷ 15 s and 2 ÷ 60 s instead of 1 ÷ 10 s.
    expect(heartbeatsOf.dollarsPerMonth / of10.dollarsPerMonth).toBeCloseTo(5 / 3);
  });

  it('are assumed to be the default where the API reports none', () => {
    const beats = beatsByProfile(nodes, undefined);
    expect(beats).toEqual([{ profile: 'default', nodes: 4, intervalSeconds: 10 }]);
    expect(intervalsText(beats, false)).toBe('The API reports no heartbeat intervals: 10 s are assumed for each node.');
  });

  it('are none without nodes', () => {
    expect(intervalsText(beatsByProfile([], heartbeats), true)).toBe('There are no nodes.');
    expect(
      costItems([], 0)
        .slice(1)
        .map(({ dollarsPerMonth }) => dollarsPerMonth),
    ).toEqual([0, 0, 0]);
  });
});

describe('a word that is ours', () => {
  const marked = (sentence: string): string =>
    sentenceParts(sentence)
      .map(({ text, term }) => (term === undefined ? text : `[${text}=${term}]`))
      .join('');

  it('is explained where it occurs first in a sentence', () => {
    expect(marked('No pod is evicted while the safety gate is closed. The gate opens again.')).toBe(
      'No pod is evicted while the [safety gate=gate] is closed. The gate opens again.',
    );
    expect(marked('Flapping: 2 nodes, one in FullDisruption.')).toBe(
      '[Flapping=flapping]: 2 nodes, one in [FullDisruption=FullDisruption].',
    );
  });

  it('is not a part of a name or of another word', () => {
    const sentence = '2 nodes silent: edge-gate, gate-1, tick.local, limiters and delegate.';
    expect(marked(sentence)).toBe(sentence);
  });

  it('is found in a subject', () => {
    expect([termIn('Total disruption'), termIn('Zone a')]).toEqual(['total disruption', undefined]);
  });
});

it('the oldest pending pod is of the pods that were read, where there are more', () => {
  expect(oldestPendingTitle(undefined)).toBe('Oldest pending pod');
  expect(oldestPendingTitle(2_000)).toBe('Oldest of the first 2000 pending pods');
});
