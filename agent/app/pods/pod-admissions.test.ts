import { expect, it } from 'vitest';
import { defined } from '../../../shared/defined.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import {
  answered,
  refused,
  scriptedApi,
  silentLog,
  silentMeter,
  timedOut,
  virtualTime,
} from '../../../test/support/agent-api.ts';
import { noHeartbeats } from '../../../test/support/memory-heartbeat-file.ts';
import { memoryRuntime } from '../../../test/support/memory-runtime.ts';
import type { KubeAnswer } from '../../ports/kube-api.ts';
import { ADMITTED, type Admission, refused as refusal } from '../../rules/pod-admission.ts';
import { PodAdmissions } from './pod-admissions.ts';
import { newPodEntry, type PodEntry } from './pod-entry.ts';

const node = (pods: string): KubeAnswer =>
  answered(200, { kind: 'Node', metadata: { name: 'n1' }, status: { allocatable: { pods, cpu: '4' } } });
const podOf = (name: string, more: object = {}): KubePod => ({
  metadata: { name, namespace: 'ns', uid: name, creationTimestamp: `2023-01-01T00:00:0${name.length}Z`, ...more },
  spec: { containers: [{ name: 'main' }] },
});

const isEntry = (each: KubePod | PodEntry): each is PodEntry => 'pod' in each;

interface Given {
  readonly pods: readonly (KubePod | PodEntry)[];
  readonly answer?: KubeAnswer;
  readonly gate?: (pod: KubePod) => Admission;
  readonly topology?: (pod: KubePod) => Admission;
  readonly refusal?: { readonly reason: string; readonly message: string };
  readonly declaredFeatures?: readonly string[];
}

function world({ pods, answer = node('10'), gate = () => ADMITTED, topology = () => ADMITTED, ...given }: Given) {
  const { refusal: never, declaredFeatures } = given;
  const time = virtualTime(1_700_000_000_000);
  const api = scriptedApi(() => answer);
  const all = pods.map((each): PodEntry => (isEntry(each) ? each : newPodEntry(each, true)));
  const entries = new Map(all.map((entry) => [entry.uid, entry]));
  const asked: string[] = [];
  const events: string[] = [];
  const counts: string[] = [];
  const logs: string[] = [];
  const log = {
    ...silentLog,
    warn: (message: string) => logs.push(message),
    info: (message: string) => logs.push(message),
  };
  const admissions = new PodAdmissions(
    {
      nodeName: 'n1',
      api,
      runtime: { ...memoryRuntime(time, never), ...defined({ declaredFeatures }) },
      probes: {
        update() {},
        readinessOf: () => ({ started: true, ready: true }),
        remove() {},
        onResult() {},
        stop() {},
      },
      heartbeats: noHeartbeats(time),
      inputs: { prepare: async () => {}, changed() {}, remove: async () => {}, keepOnly() {} },
      time,
      fraction: () => 0,
      log,
      meter: { ...silentMeter, count: (name, labels) => counts.push(`${name} ${labels?.['reason']}`) },
      operatingSystem: 'linux',
      hostIp: () => undefined,
      recordEvent: ({ metadata }, { type, reason, message }) =>
        events.push(`${metadata.name} ${type} ${reason} ${message}`),
      gate,
      topology: {
        admit(pod) {
          asked.push(pod.metadata.name ?? '');
          return topology(pod);
        },
        release() {},
      },
    },
    entries,
  );
  const decided = () =>
    [...entries.values()].map(({ uid, admission, adopted }) => `${uid} ${admission}${adopted ? ' adopted' : ''}`);
  return { admissions, api, entries, asked, events, counts, logs, decided };
}

it('admits new pods in the order of their creation, up to the limit of the node', async () => {
  const { admissions, asked, decided, api, events } = world({
    pods: [podOf('ccc'), podOf('a'), podOf('bb')],
    answer: node('2'),
  });
  expect(await admissions.decide(new Set())).toBe(true);
  expect(decided()).toEqual(['ccc refused', 'a admitted', 'bb admitted']);
  expect([asked, api.requests.map(({ path }) => path)]).toEqual([['a', 'bb'], ['/api/v1/nodes/n1']]);
  expect(events).toEqual([
    "ccc Warning OutOfpods Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
  ]);
});

it.each([
  [[], ['a refused']],
  [['UserNamespacesHostNetworkSupport'], ['a admitted']],
])('admits by what its runtime declares: %j', async (declaredFeatures, expected) => {
  const pod = { ...podOf('a'), spec: { hostNetwork: true, hostUsers: false } };
  const { admissions, decided } = world({ pods: [pod], declaredFeatures });
  await admissions.decide(new Set());
  expect(decided()).toEqual(expected);
});

it('counts pods that were admitted and still run, and no others', async () => {
  const finished = { ...newPodEntry(podOf('aa'), true), admission: 'admitted' as const, status: { phase: 'Failed' } };
  const absent = { ...newPodEntry(podOf('bb'), false), admission: 'admitted' as const };
  const waiting = newPodEntry(podOf('zz', { deletionTimestamp: 'x' }), true);
  const refusedBefore = { ...newPodEntry(podOf('dd'), true), admission: 'refused' as const };
  const others = [finished, absent, waiting, refusedBefore];
  const free = world({ pods: [...others, podOf('new')], answer: node('1') });
  await free.admissions.decide(new Set());
  expect(free.decided().at(-1)).toBe('new admitted');
  const running = { ...newPodEntry(podOf('ee'), true), admission: 'admitted' as const };
  const full = world({ pods: [running, podOf('new')], answer: node('1') });
  await full.admissions.decide(new Set());
  expect(full.decided()).toEqual(['ee admitted', 'new refused']);
});

it('adopts a pod that runs already, whatever would be decided now, before new ones', async () => {
  const { admissions, asked, decided, logs } = world({
    pods: [podOf('a'), podOf('running')],
    topology: (pod) => (pod.metadata.name === 'running' ? refusal('TopologyAffinityError', 'no') : ADMITTED),
  });
  expect(await admissions.decide(new Set(['running']))).toBe(true);
  expect([asked, decided()]).toEqual([
    ['running', 'a'],
    ['a admitted', 'running admitted adopted'],
  ]);
  expect(logs).toEqual(['a running pod would not be admitted now']);
});

it('does not read the Node when nothing depends on it', async () => {
  const gone = world({
    pods: [podOf('deleted', { deletionTimestamp: 'x' }), newPodEntry(podOf('absent'), false), podOf('run')],
  });
  expect(await gone.admissions.decide(new Set(['run']))).toBe(true);
  expect([gone.api.requests, gone.decided()]).toEqual([
    [],
    ['deleted waiting', 'absent waiting', 'run admitted adopted'],
  ]);
  const shut = world({ pods: [podOf('a')], gate: () => refusal('NodeShutdown', 'down') });
  expect(await shut.admissions.decide(new Set())).toBe(true);
  expect([shut.api.requests, shut.decided(), shut.counts]).toEqual([
    [],
    ['a refused'],
    ['kubelet_admission_rejections_total NodeShutdown'],
  ]);
});

it.each([timedOut, answered(200, 'a page'), refused(404, 'NotFound')])(
  'leaves pods waiting without the Node: %j',
  async (answer) => {
    const { admissions, decided, logs } = world({
      pods: [podOf('a'), podOf('bb')],
      answer,
      gate: (pod) => (pod.metadata.name === 'a' ? refusal('Evicted', 'x') : ADMITTED),
    });
    expect(await admissions.decide(new Set())).toBe(false);
    expect(decided()).toEqual(['a refused', 'bb waiting']);
    expect(logs).toContain('the Node cannot be read, so no pod is admitted');
    const stopped = world({ pods: [podOf('a')], answer });
    expect(await stopped.admissions.decide(new Set(), AbortSignal.abort())).toBe(false);
    expect(stopped.logs).toEqual([]);
  },
);

it('refuses all pods where none can run, and those that the topology refuses', async () => {
  const none = world({ pods: [podOf('a')], refusal: { reason: 'NoRuntime', message: 'none' } });
  await none.admissions.decide(new Set());
  expect(none.events).toEqual(['a Warning NoRuntime none']);
  const [entry] = none.entries.values();
  expect(entry?.status).toMatchObject({ phase: 'Failed', reason: 'NoRuntime' });
  const topology = world({ pods: [podOf('a')], topology: () => refusal('TopologyAffinityError', 'no') });
  await topology.admissions.decide(new Set());
  expect(topology.decided()).toEqual(['a refused']);
});

it('admits a pod while the API does not answer', async () => {
  const entry = newPodEntry(podOf('static'), true);
  const cases = [
    [{}, false, 'static admitted'],
    [{}, true, 'static admitted adopted'],
    [{ gate: () => refusal('Evicted', 'x') }, false, 'static refused'],
    [{ gate: () => refusal('Evicted', 'x') }, true, 'static admitted adopted'],
    [{ topology: () => refusal('TopologyAffinityError', 'x') }, false, 'static refused'],
  ] as const;
  for (const [more, isRunning, expected] of cases) {
    const own = { ...entry };
    const { admissions, decided, api } = world({ pods: [own], ...more });
    admissions.admitWithoutNode(own, isRunning);
    expect([decided(), api.requests]).toEqual([[expected], []]);
  }
});
