import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { addressOf, jumpTarget, parseAddress, withQuery } from './address.ts';
import { decisionFilterOf, queryOfDecisions } from './decision-filter.ts';
import { cellOf } from './node-cell.ts';
import { allocatedByNode, cpuText, memoryText, NODE_COLUMNS, nodeRowsOf } from './node-rows.ts';
import { isPodTrouble, podRowOf, podRowsOf } from './pod-rows.ts';
import { nextSort, ordered, visibleRows } from './rows.ts';
import { isShown, workloadRowOf } from './workloads.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

const node = (name: string, ready: 'True' | 'Unknown', labels: Record<string, string> = {}): KubeNode => ({
  metadata: { name, labels },
  status: {
    conditions: [{ type: 'Ready', status: ready }],
    allocatable: { cpu: '3920m', memory: '8Gi' },
    nodeInfo: { kubeletVersion: 'v1.36.3' } as never,
  },
});

const pod = (name: string, nodeName: string, phase = 'Running', cpu = '250m'): KubePod => ({
  metadata: { name, namespace: 'default' },
  spec: { nodeName, containers: [{ name: 'c', resources: { requests: { cpu, memory: '512Mi' } } }] },
  status: {
    phase: phase as 'Running',
    containerStatuses: [{ name: 'c', ready: true, restartCount: 2, state: { running: {} } }] as never,
  },
});

const rowsOf = (filter: string, renewedAgoMs = 10_000) =>
  nodeRowsOf({
    nodes: [node('n-10', 'True', { link: 'cell' }), node('n-2', 'True'), node('n-3', 'Unknown')].map(cellOf),
    status: { heartbeats: [{ profile: 'default', intervalSeconds: 10, graceSeconds: 40 }] },
    renewedAtMs: () => NOW_MS - renewedAgoMs,
    heartbeatsReadAtMs: NOW_MS,
    allocated: new Map([['n-2', { pods: 3, cpu: 500, memory: 2 ** 29 }]]),
    filter,
    nowMs: NOW_MS,
  });
const namesOf = (filter: string): readonly string[] => rowsOf(filter).map(({ cell }) => cell.name);

describe('the list of nodes', () => {
  it('has trouble first, then names by their numbers', () => {
    expect(namesOf('')).toEqual(['n-3', 'n-2', 'n-10']);
  });

  it.each([
    ['notready', ['n-3']],
    ['silent', ['n-3']],
    ['LINK=Cell', ['n-10']],
    ['v1.36 n-2', ['n-2']],
    ['status=ready', ['n-2', 'n-10']],
    ['nothing=x', []],
  ])('is filtered by %j', (filter, names) => {
    expect(namesOf(filter)).toEqual(names);
  });

  it('has the share of the grace period that has passed, and what pods request', () => {
    const [row] = rowsOf('n-2');
    expect([row?.graceShare, row?.allocated?.pods]).toEqual([0.25, 3]);
    expect(rowsOf('n-10')[0]?.allocated?.pods).toBe(0);
    expect(rowsOf('n-2', 90_000)[0]?.graceShare).toBe(1);
    expect([cpuText(500, 3_920), memoryText(2 ** 29, 2 ** 33)]).toEqual(['0.5 of 3.9', '0.5 of 8 Gi']);
  });

  it('is ordered by a column, both ways, and as before after the third click', () => {
    const sorted = (sort: string) => ordered(rowsOf(''), NODE_COLUMNS, sort).map(({ cell }) => cell.name);
    expect(sorted('name')).toEqual(['n-2', 'n-3', 'n-10']);
    expect(sorted('-pods')[0]).toBe('n-2');
    expect(['', 'pods', '-pods'].map((sort) => nextSort(sort, 'pods'))).toEqual(['pods', '-pods', '']);
  });
});

it('sums the requests of the pods that have not ended', () => {
  const pods = [pod('a', 'n1'), pod('b', 'n1', 'Running', '1'), pod('c', 'n1', 'Succeeded'), pod('d', '')];
  expect([...allocatedByNode(pods.map((each) => podRowOf(each, NOW_MS)))]).toEqual([
    ['n1', { pods: 2, cpu: 1_250, memory: 2 ** 30 }],
  ]);
});

describe('the list of pods', () => {
  const rows = [pod('a', 'n1'), pod('b', 'n2', 'Pending')].map((each) => podRowOf(each, NOW_MS));

  it('has the pod first that does not run, and the restarts as a number', () => {
    const broken = podRowOf(
      { ...pod('z', 'n1'), metadata: { name: 'z', namespace: 'default', deletionTimestamp: 'x' } },
      NOW_MS,
    );
    expect(podRowsOf([...rows, broken], '').map(({ name, status }) => `${name} ${status}`)).toEqual([
      'b Pending',
      'z Terminating',
      'a Running',
    ]);
    expect(rows[0]?.restarts).toBe(2);
  });

  it('is filtered by node', () => {
    expect(podRowsOf(rows, 'node=n2').map(({ name }) => name)).toEqual(['b']);
  });

  it.each([
    ['Running', '1/1', false],
    ['Running', '0/1', true],
    ['Completed', '0/1', false],
    ['Pending', '0/1', true],
  ])('calls %s with %s trouble: %s', (status, ready, isTrouble) => {
    expect(isPodTrouble({ status, ready })).toBe(isTrouble);
  });
});

it('has the numbers of each kind of workload, and no empty old ReplicaSet', () => {
  const metadata = { name: 'w', namespace: 'd' };
  const shown = [
    workloadRowOf('deployment', { metadata, spec: { replicas: 3 }, status: { readyReplicas: 1 } }),
    workloadRowOf('daemonset', { metadata, status: { numberReady: 2, desiredNumberScheduled: 2 } }),
    workloadRowOf('job', { metadata, spec: { completions: 4 }, status: { succeeded: 1 } }),
    workloadRowOf('cronjob', { metadata, spec: { schedule: '* * * * *', suspend: true } }),
  ].map(({ ready, isShort }) => [ready, isShort]);
  expect(shown).toEqual([
    ['1/3', true],
    ['2/2', false],
    ['1/4', true],
    ['* * * * *, suspended', false],
  ]);
  expect(isShown(workloadRowOf('replicaset', { metadata, spec: { replicas: 0 } }))).toBe(false);
  const failing = { type: 'Progressing', status: 'False', message: 'no progress for 600 s' };
  expect(workloadRowOf('deployment', { metadata, status: { conditions: [failing] } }).why).toBe(
    'no progress for 600 s',
  );
});

it('renders the rows in sight and some more', () => {
  const at = (scrollTop: number, count = 5_000) => visibleRows(count, { scrollTop, height: 320, rowHeight: 32 });
  expect([at(0), at(3_200), at(0, 3), at(1_000_000)]).toEqual([
    { first: 0, end: 16 },
    { first: 94, end: 116 },
    { first: 0, end: 3 },
    { first: 5_000, end: 5_000 },
  ]);
});

describe('the address', () => {
  it('has the view, its names and its filter', () => {
    const { route, names, query } = parseAddress('#/pod/default/a%2Fb?q=x%20y');
    expect([route, names, query.get('q')]).toEqual(['pod', ['default', 'a/b'], 'x y']);
    expect(parseAddress('').route).toBe('now');
    expect(parseAddress('#/node/%E0%A4%A').names).toEqual(['%E0%A4%A']);
    expect(addressOf('node', '<b>')).toBe('#/node/%3Cb%3E');
  });

  it('keeps the other parts of its query', () => {
    const address = parseAddress('#/nodes?q=x&sort=-cpu');
    expect([withQuery(address, { q: 'y' }), withQuery(address, { q: '', sort: '' })]).toEqual([
      '#/nodes?q=y&sort=-cpu',
      '#/nodes',
    ]);
  });

  it.each([
    ['n1', '#/node/n1'],
    [':po', '#/pods'],
    ['d/web-1', '#/pod/d/web-1'],
    ['gpu', '#/nodes?q=gpu'],
    [' ', undefined],
  ])('of a jump to %j is %j', (typed, target) => {
    expect(jumpTarget(typed, (name) => name === 'n1')).toBe(target);
  });
});

describe('the filter of Decisions', () => {
  const filterOf = (query: string) => decisionFilterOf(new URLSearchParams(query));

  it('is in the address, without what an address without a filter means', () => {
    const filter = filterOf('about=pod&name=default/web-0&act=PodDeleted&hours=1&zone=a');
    expect(filter).toEqual({ about: 'pod', name: 'default/web-0', act: 'PodDeleted', zone: '', hours: 1 });
    expect(queryOfDecisions(filter)).toEqual({
      about: 'pod',
      name: 'default/web-0',
      act: 'PodDeleted',
      zone: '',
      hours: '1',
    });
    expect(new Set(Object.values(queryOfDecisions(filterOf(''))))).toEqual(new Set(['']));
  });

  it('ignores what is no choice', () => {
    expect(filterOf('about=secret&act=Nothing&hours=5&zone=a')).toEqual({
      ...{ about: 'cluster', name: '', act: '', zone: 'a', hours: 24 },
    });
  });
});
