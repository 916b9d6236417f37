import { describe, expect, it } from 'vitest';
import type { KubeClusterStatus, KubeNode } from '../../shared/kinds/types.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type { EvictablePod } from './eviction-plan.ts';
import { cellOf, type NodeCell } from './node-cell.ts';
import { quietText, type SituationInput, troublesOf, worstFirst } from './situation.ts';
import { zonesOf } from './zone-summary.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const secondsAgo = (seconds: number): string => rfc3339(NOW_MS - seconds * 1_000);

interface Parts {
  readonly ready?: 'True' | 'False' | 'Unknown';
  /** Since when. Seconds. */
  readonly ago?: number;
  /** When the NoExecute taint was added. Seconds. */
  readonly taintedAgo?: number;
  readonly zone?: string;
}

const cell = (name: string, { ready = 'True', ago = 0, taintedAgo, zone = 'a' }: Parts = {}): NodeCell => {
  const timeAdded = taintedAgo === undefined ? undefined : secondsAgo(taintedAgo);
  const node: KubeNode = {
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } },
    spec:
      timeAdded === undefined
        ? {}
        : { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded }] },
    status: { conditions: [{ type: 'Ready', status: ready, lastTransitionTime: secondsAgo(ago) }] },
  };
  return cellOf(node);
};

type Status = NonNullable<KubeClusterStatus['status']>;
const status = (more: Partial<Status> = {}): Status => ({
  lastTickTime: secondsAgo(3),
  gate: { state: 'Open', reasons: [] },
  totalDisruption: false,
  heartbeats: [{ profile: 'default', intervalSeconds: 10, graceSeconds: 40 }],
  ...more,
});

const zoneMetrics = (zone: string, state: string, rate: number) =>
  [
    ['nodekeeper_zone_state', [{ labels: { zone, state }, value: 1 }]],
    ['nodekeeper_zone_eviction_rate', [{ labels: { zone }, value: rate }]],
  ] as const;

/** A pod as the API admits it: it tolerates a silent node for five minutes. */
const pod = (more: Partial<EvictablePod> = {}): EvictablePod => ({
  tolerations: ['not-ready', 'unreachable'].map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  })),
  boundAtMs: NOW_MS - 3_600_000,
  isTerminating: false,
  ...more,
});

function situation(
  cells: readonly NodeCell[],
  more: Partial<SituationInput> & { readonly state?: string; readonly rate?: number } = {},
) {
  const { state = 'Normal', rate = 0.1, ...rest } = more;
  const metrics = new Map(zoneMetrics('a', state, rate));
  const troubles = troublesOf({
    nodes: cells,
    zones: zonesOf(cells, metrics, NOW_MS),
    status: status(),
    renewedAtMs: () => NOW_MS - 4_000,
    heartbeatsReadAtMs: NOW_MS,
    podsOf: () => [],
    oldestPending: undefined,
    deployments: [],
    disruptionEndedMs: undefined,
    nowMs: NOW_MS,
    ...rest,
  });
  const inSeconds = (atMs: number | undefined): string =>
    atMs === undefined ? '' : `in ${(atMs - NOW_MS) / 1_000} s: `;
  return troubles.map(({ level, subject, text, next }) => [
    `${level} ${subject}: ${text}`,
    ...next.map((event) => `${inSeconds(event.atMs)}${event.text}`),
  ]);
}

describe('the situation', () => {
  it('is nothing while all nodes are Ready', () => {
    expect(situation([cell('n1'), cell('n2')])).toEqual([]);
  });

  it('is a silent zone, with the time at which its pods leave', () => {
    const cells = ['n1', 'n2'].map((name, index) =>
      cell(name, { ready: 'Unknown', ago: 30, taintedAgo: 20 - 10 * index }),
    );
    const troubles = situation(cells, {
      state: 'FullDisruption',
      podsOf: () => [pod(), pod()],
      renewedAtMs: () => NOW_MS - 72_000,
    });
    expect(troubles).toEqual([
      ['bad Zone a: 2 of 2 nodes silent for 72s: n1 and n2.', 'in 280 s: 4 pods are evicted, the last 10s later'],
    ]);
  });

  it('names the nodes that wait for the limiter, and counts their pods with the taint to come', () => {
    const cells = [
      cell('n1', { ready: 'Unknown', ago: 30, taintedAgo: 5 }),
      cell('n2', { ready: 'Unknown', ago: 20 }),
      cell('n3', { ready: 'Unknown', ago: 10 }),
    ];
    const [lines] = situation(cells, { podsOf: () => [pod()] });
    expect(lines?.slice(1)).toEqual([
      'in 295 s: 3 pods are evicted, the last 15s later',
      'in 0 s: the next of 2 nodes is tainted, one taint every 10 s',
    ]);
  });

  it('says that no pod has to leave, with those that stay, and which are being deleted', () => {
    const cells = [cell('n1', { ready: 'Unknown', ago: 400, taintedAgo: 390 })];
    const forever = pod({ tolerations: [{ operator: 'Exists' }] });
    const [lines] = situation(cells, { podsOf: () => [forever, pod({ isTerminating: true })] });
    expect(lines?.slice(1)).toEqual([
      '1 pod being deleted: they end when the machine confirms it, or the Node is deleted.',
    ]);
    const [staying] = situation(cells, { podsOf: () => [forever] });
    expect(staying?.slice(1)).toEqual(['No pod has to leave: 1 pod tolerate it for ever.']);
  });

  it('promises no eviction where the limiter grants none, the gate is closed, or no zone has a Ready node', () => {
    const cells = [cell('n1', { ready: 'Unknown', ago: 30 }), cell('n2')];
    const podsOf = () => [pod()];
    const next = (more: Parameters<typeof situation>[1]) =>
      situation(cells, { podsOf, ...more })
        .at(-1)
        ?.slice(1);
    expect(next({ state: 'PartialDisruption', rate: 0 })).toEqual([
      '1 node not tainted: the rate of the zone is 0 while it is in PartialDisruption.',
    ]);
    expect(next({ status: status({ gate: { state: 'Closed', reasons: ['failingPath'] } }) })).toEqual([
      'No pod is evicted while the safety gate is closed.',
    ]);
    expect(next({ status: status({ totalDisruption: true }) })).toEqual(['No pod is evicted in total disruption.']);
  });

  it('waits a grace period after the gate opened', () => {
    const cells = [cell('n1', { ready: 'Unknown', ago: 900, taintedAgo: 900 })];
    const opened = status({ gate: { state: 'Open', reasons: [], since: secondsAgo(15) } });
    expect(situation(cells, { podsOf: () => [pod()], status: opened })[0]?.[1]).toBe('in 25 s: 1 pod is evicted');
  });

  it('waits a grace period after total disruption ended', () => {
    const cells = [cell('n1', { ready: 'Unknown', ago: 900, taintedAgo: 900 }), cell('n2')];
    const evicted = (openForSeconds: number) =>
      situation(cells, {
        podsOf: () => [pod()],
        status: status({ gate: { state: 'Open', reasons: [], since: secondsAgo(openForSeconds) } }),
        disruptionEndedMs: NOW_MS - 10_000,
      })[0]?.[1];
    expect(evicted(600)).toBe('in 30 s: 1 pod is evicted');
    expect(evicted(5)).toBe('in 35 s: 1 pod is evicted');
  });

  it('has the worst first: gate, disruption, the worst zone, then the others', () => {
    const cells = [
      cell('b1', { zone: 'b', ready: 'Unknown' }),
      cell('a1', { ready: 'False', ago: 5 }),
      cell('a2'),
      cell('c1', { zone: 'c' }),
    ];
    const troubles = situation(cells, {
      status: status({ gate: { state: 'Closed', reasons: ['missedTicks'], since: secondsAgo(65) } }),
      deployments: [{ namespace: 'd', name: 'web', wanted: 3, ready: 1, updated: 2 }],
    });
    expect(troubles.map(([first]) => first)).toEqual([
      'bad Safety gate: closed for 65s: ticks of node-monitor are missing. No node is newly marked, tainted or evicted.',
      'bad Zone b: 1 of 1 node silent for 4s: b1.',
      'warn Zone a: 1 of 2 nodes NotReady for 5s: a1.',
      'note Deployment d/web: 1 of 3 ready, 2 of 3 updated.',
    ]);
  });

  it('is a heartbeat that is late, before its node is marked', () => {
    const [lines] = situation([cell('n1'), cell('n2')], {
      renewedAtMs: (name) => NOW_MS - (name === 'n1' ? 23_000 : 14_000),
    });
    expect(lines).toEqual([
      'warn Late heartbeats: 1 node silent for up to 23s: n1.',
      'in 17 s: the first is marked Unknown, unless it sends a heartbeat',
    ]);
  });

  it('is no late heartbeat that would be one only by the age of what was read', () => {
    const troubles = situation([cell('n1')], {
      renewedAtMs: () => NOW_MS - 23_000,
      heartbeatsReadAtMs: NOW_MS - 10_000,
    });
    expect(troubles).toEqual([]);
  });

  it('counts at least the pods that are known', () => {
    const cells = ['n1', 'n2'].map((name) => cell(name, { ready: 'Unknown', ago: 30, taintedAgo: 20 }));
    const [lines] = situation(cells, { podsOf: (name) => (name === 'n1' ? [pod()] : undefined) });
    expect(lines?.[1]).toBe('in 280 s: at least 1 pod is evicted');
  });

  it('is a pod that waits, with the reason of the scheduler', () => {
    const waiting = { namespace: 'd', name: 'p', phase: 'Pending', node: '', owner: '', isTerminating: false };
    const oldestPending = {
      ...waiting,
      createdAtMs: NOW_MS - 90_000,
      whyPending: '0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 not helpful.',
    };
    expect(situation([cell('n1')], { oldestPending })).toEqual([
      ['warn Pending pods: d/p waits for a node for 90s: 0/2 nodes are available: 2 Insufficient cpu.'],
    ]);
    expect(situation([cell('n1')], { oldestPending: { ...oldestPending, createdAtMs: NOW_MS - 9_000 } })).toEqual([]);
  });

  it('is no trouble that the last tick is old: the API closes the gate', () => {
    expect(situation([cell('n1')], { status: status({ lastTickTime: secondsAgo(3_600) }) })).toEqual([]);
  });
});

it('orders zones by their state before the share of nodes that are down', () => {
  const down = ['d1', 'd2'].map((name) => cell(name, { ready: 'False', zone: 'down' }));
  const full = [cell('f1', { ready: 'False', zone: 'full' }), cell('f2', { zone: 'full' })];
  const zones = zonesOf([...down, ...full, cell('r', { zone: 'ready' })], new Map(), NOW_MS);
  // A zone is in full disruption with less of its nodes down, where the others are in planned silence.
  const stated = zones.map((zone) => (zone.zone === 'full' ? { ...zone, state: 'FullDisruption' } : zone));
  expect(stated.toSorted(worstFirst).map(({ zone }) => zone)).toEqual(['full', 'down', 'ready']);
});

it('says when the last trouble ended, while there is none', () => {
  const threeHoursAgoMs = NOW_MS - 3 * 3_600_000;
  expect([
    quietText(6, threeHoursAgoMs, NOW_MS),
    quietText(1, undefined, NOW_MS),
    quietText(0, 'unknown', NOW_MS),
    quietText(6, 'unknown', NOW_MS),
    quietText(6, undefined, NOW_MS, true),
  ]).toEqual([
    'All 6 nodes are Ready. Last disruption 3h ago.',
    'The node is Ready. No disruption is recorded.',
    'No machine has joined yet.',
    'All 6 nodes are Ready.',
    'The 6 nodes that were read are Ready.',
  ]);
});
