/** Attempts over a copy of a cluster in memory: what is stored about pods that are bound, refused or not tried. */
import { beforeEach, describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { type QueueStore, queueStore, type WaitingRow } from '../../shared/scheduling/queue-store.ts';
import { type ItemStore, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type WorkDependencies, workDependencies } from '../../shared/ticks/dependencies.ts';
import { cycleOptions, type DuePod, type PassContext, tryPods } from './attempts.ts';
import { ClusterCopy } from './cluster-copy.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

type Answer = Awaited<ReturnType<ItemStore['transact']>>;

let items: MemoryItemStore;
let dependencies: WorkDependencies;
let copy: ClusterCopy;
let queue: QueueStore;
let rows: Map<string, WaitingRow>;
let report: PassContext['report'];
let pauses: number[];
/** Instead of the transactions that bind pods; undefined: they are carried out. */
let answer: (pods: readonly string[]) => Promise<Answer | undefined>;
/** Pods of each transaction that binds some. */
let commits: string[][];

beforeEach(() => {
  let uuids = 0;
  items = memoryItemStore();
  pauses = [];
  commits = [];
  rows = new Map();
  report = { bound: 0, rejected: 0, errors: 0, victims: 0 };
  answer = async () => undefined;
  const silent = () => {};
  const podsOf = (writes: readonly TransactWrite[]) =>
    writes.flatMap(({ kind, key }) => (key.pk.startsWith('o#pods#') && kind === 'put' ? [key.sk.split('/')[1]!] : []));
  const isBinding = (writes: readonly TransactWrite[]) => writes.some(({ key }) => key.sk === 'order');
  dependencies = workDependencies({
    items: {
      ...items,
      async transact(writes) {
        if (!isBinding(writes)) return items.transact(writes);
        commits.push(podsOf(writes));
        return (await answer(podsOf(writes))) ?? items.transact(writes);
      },
    },
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => `e${uuids++}`, fraction: () => 0.5 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
    pause: async (milliseconds) => void pauses.push(milliseconds),
  });
  queue = queueStore(items);
  copy = new ClusterCopy(dependencies, queue);
});

async function create(resource: string, object: KubeObject): Promise<void> {
  const { namespace = '', name = '' } = object.metadata;
  await dependencies.objects.commit({ writes: [{ kind: 'create', ref: { resource, namespace, name }, object }] });
}
const createNode = (name: string, cpu = '9') =>
  create('nodes', {
    kind: 'Node',
    metadata: { name, uid: name, labels: { 'kubernetes.io/hostname': name } },
    status: { allocatable: { cpu, memory: '1Gi', pods: '99' }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
const createPod = (
  name: string,
  { cpu = '10m', ...spec }: { readonly cpu?: string; readonly [field: string]: unknown } = {},
) =>
  create('pods', {
    kind: 'Pod',
    metadata: { namespace: 'd', name, uid: `uid-${name}` },
    spec: {
      schedulerName: 'default-scheduler',
      containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }],
      ...spec,
    },
    status: { phase: 'Pending' },
  });
const pod = async (name: string) =>
  (await dependencies.objects.get({ resource: 'pods', namespace: 'd', name })) as KubePod;

const dueOf = (name: string, row?: Partial<WaitingRow>): DuePod => ({
  key: `d/${name}`,
  uid: `uid-${name}`,
  queuedAtMs: NOW_MS - 9_000,
  row:
    row === undefined
      ? undefined
      : {
          key: `d/${name}`,
          uid: `uid-${name}`,
          rejections: 0,
          errors: 0,
          triedAtMs: NOW_MS - 5_000,
          plugins: [],
          isRequeued: true,
          queuedAtMs: NOW_MS - 9_000,
          eventAtMs: 0,
          process: 'other',
          changesSeen: 0,
          ...row,
        },
});

async function attempt(due: readonly DuePod[], more: Partial<PassContext> = {}): Promise<string[]> {
  await copy.refresh();
  for (const { key, row } of due) {
    if (row === undefined) continue;
    rows.set(key, row);
    await queue.putRow(row);
  }
  const left = await tryPods(
    {
      dependencies,
      copy,
      queue,
      options: { percentageOfNodesToScore: 0, defaultTopologySpread: 'none' },
      isHeld: false,
      budget: { hasTime: () => true },
      rows,
      report,
      ...more,
    },
    due,
  );
  return left.map(({ key }) => key);
}
const storedRows = async () => new Map((await queue.rows()).map((row) => [row.key, row]));

describe('pods that fit', () => {
  it('are bound twelve at a time, and lose their rows', async () => {
    await createNode('n');
    const names = Array.from({ length: 14 }, (_, index) => `p${index}`);
    for (const name of names) await createPod(name);
    expect(await attempt(names.map((name) => dueOf(name, name === 'p3' ? { rejections: 1 } : undefined)))).toEqual([]);
    expect(commits.map((each) => each.length)).toEqual([12, 2]);
    expect(report).toEqual({ bound: 14, rejected: 0, errors: 0, victims: 0 });
    expect([rows.size, (await storedRows()).size]).toEqual([0, 0]);
    expect((await pod('p13')).spec?.nodeName).toBe('n');
    expect(copy.pending.size).toBe(0);
  });

  it('are bound before one of them that fits no longer is tried', async () => {
    await createNode('n', '1');
    for (const name of ['a', 'b', 'c']) await createPod(name, { cpu: '600m' });
    await attempt(['a', 'b', 'c'].map((name) => dueOf(name)));
    expect(commits).toEqual([['a']]);
    expect(report).toMatchObject({ bound: 1, rejected: 2 });
    expect([...rows.keys()]).toEqual(['d/b', 'd/c']);
  });

  it.each<[string, (due: DuePod) => DuePod, string]>([
    ['no longer exists', (due) => ({ ...due, key: 'd/gone' }), 'p'],
    ['was replaced by another one', (due) => ({ ...due, uid: 'former' }), 'p'],
    ['is gated', (due) => due, 'gated'],
    ['is bound already', (due) => due, 'bound'],
  ])('are bound although the last one %s', async (_, changed, name) => {
    await createNode('n');
    await createPod('first');
    await createPod('p');
    await createPod('gated', { schedulingGates: [{ name: 'g' }] });
    await createPod('bound', { nodeName: 'n' });
    expect(await attempt([dueOf('first'), changed(dueOf(name))])).toEqual([]);
    expect(commits).toEqual([['first']]);
    expect(rows.size).toBe(0);
  });

  it('are tried in this pass while there is time, and the decided ones are bound after it', async () => {
    await createNode('n');
    for (const name of ['a', 'b', 'c', 'd']) await createPod(name);
    let looks = 0;
    const budget = { hasTime: () => looks++ < 2 };
    expect(
      await attempt(
        ['a', 'b', 'c', 'd'].map((name) => dueOf(name)),
        { budget },
      ),
    ).toEqual(['d/c', 'd/d']);
    expect(commits).toEqual([['a', 'b']]);
  });
});

describe('a binding that is refused', () => {
  it('is decided again after a pause that grows, and twelve times at most', async () => {
    await createNode('n');
    await createPod('a');
    answer = () => Promise.reject(new StoreFault('timeout', 'late', { retryable: true }));
    expect(await attempt([dueOf('a', { errors: 2, rejections: 3, eventAtMs: 77 })])).toEqual([]);
    expect(commits).toHaveLength(13);
    expect(pauses).toHaveLength(12);
    expect(pauses.slice(0, 3)).toEqual([8, 16, 32]);
    expect(Math.max(...pauses)).toBe(250);
    expect(report).toMatchObject({ bound: 0, errors: 1, rejected: 0 });
    const row = (await storedRows()).get('d/a')!;
    expect(row).toEqual(rows.get('d/a'));
    expect(row).toMatchObject({
      errors: 3,
      rejections: 3,
      eventAtMs: 77,
      plugins: [],
      isRequeued: false,
      triedAtMs: NOW_MS,
      queuedAtMs: NOW_MS - 9_000,
      process: copy.process,
      changesSeen: copy.history.changeCount,
    });
    expect((await pod('a')).status?.conditions).toBeUndefined();
  });

  it('is repeated on versions that are read again', async () => {
    await createNode('n');
    await createPod('a');
    await copy.refresh();
    await items.write({ kind: 'update', key: { table: 'control', pk: 'scheduler', sk: 'order' }, add: { v: 1 } });
    await attempt([dueOf('a')]);
    expect(commits).toHaveLength(2);
    expect(report.bound).toBe(1);
    expect(pauses).toEqual([]);
  });

  it('of one pod leaves those before it bound, and tries those behind it again', async () => {
    await createNode('n');
    for (const name of ['a', 'b', 'c']) await createPod(name);
    await copy.refresh();
    const ref = { resource: 'pods', namespace: 'd', name: 'b' };
    const previous = await pod('b');
    const object = { ...previous, metadata: { ...previous.metadata, labels: { changed: 'yes' } } };
    await dependencies.objects.commit({ writes: [{ kind: 'update', ref, object, previous }] });
    const late = copy.refresh.bind(copy);
    copy.refresh = async (options) => (options === undefined ? undefined : late(options));
    expect(await attempt(['a', 'b', 'c'].map((name) => dueOf(name)))).toEqual([]);
    expect(commits).toEqual([['a', 'b', 'c'], ['a'], ['b', 'c']]);
    expect(report).toMatchObject({ bound: 3, errors: 0 });
  });
});

describe('a pod that cannot be written', () => {
  it('says so with its condition and waits, and those decided with it are left to the next round', async () => {
    await createNode('n');
    for (const name of ['a', 'b']) await createPod(name);
    answer = async (pods) => {
      if (pods.includes('b')) throw new TypeError('a bug');
      return undefined;
    };
    expect(await attempt([dueOf('a'), dueOf('b', { eventAtMs: 77 })])).toEqual([]);
    expect([...(await storedRows()).values()]).toMatchObject([
      { key: 'd/b', errors: 1, rejections: 0, eventAtMs: NOW_MS },
    ]);
    expect((await pod('b')).status?.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'SchedulerError', message: 'a bug' },
    ]);
    expect(copy.pending.get('d/b')?.metadata.resourceVersion).toBe((await pod('b')).metadata.resourceVersion);
    expect(report).toMatchObject({ bound: 0, errors: 1 });
    await attempt([dueOf('a')]);
    expect((await pod('a')).spec?.nodeName).toBe('n');
  });

  /** The report of what keeps this pod from every node fails the first time. */
  function refuseOnce(name: string, fault: StoreFault): void {
    const { commit } = dependencies.objects;
    let isRefused = false;
    dependencies.objects.commit = (given) => {
      const isReport = given.writes.some((write) => write.kind === 'update' && write.ref.name === name);
      if (isRefused || !isReport) return commit(given);
      isRefused = true;
      return Promise.reject(fault);
    };
  }

  it('or decided does not keep those before it from being bound', async () => {
    await createNode('n');
    for (const name of ['a', 'b']) await createPod(name);
    await createPod('c', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] });
    refuseOnce('c', new StoreFault('rejected', 'bad', { retryable: false }));
    expect(await attempt(['a', 'b', 'c'].map((name) => dueOf(name)))).toEqual([]);
    expect(commits).toEqual([['a', 'b']]);
    expect([...rows.keys()]).toEqual(['d/c']);
    expect((await pod('c')).status?.conditions).toMatchObject([{ message: 'bad' }]);
  });

  it('with a fault of the tables ends the pass', async () => {
    await createNode('n');
    await createPod('a');
    const fault = new StoreFault('rejected', 'bad', { retryable: true });
    refuseOnce('b', fault);
    await createPod('b', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] });
    await expect(attempt([dueOf('b')])).rejects.toBe(fault);
    expect(rows.size).toBe(0);
  });
});

describe('a pod that fits nowhere', () => {
  it('waits with the plugins that rejected it, and an attempt more', async () => {
    await createNode('n', '1');
    await createPod('a', { cpu: '2' });
    expect(await attempt([dueOf('a', { rejections: 2, errors: 4 })])).toEqual([]);
    expect((await storedRows()).get('d/a')).toMatchObject({
      rejections: 3,
      errors: 0,
      plugins: ['NodeResourcesFit'],
      eventAtMs: NOW_MS,
      isRequeued: false,
    });
    expect(report).toEqual({ bound: 0, rejected: 1, errors: 0, victims: 0 });
    expect((await pod('a')).status?.conditions).toMatchObject([{ reason: 'Unschedulable', status: 'False' }]);
  });

  it('is not bound twice: what a rejection has stored is known to the copy', async () => {
    await createNode('n', '1');
    await createPod('a', { cpu: '2' });
    await attempt([dueOf('a')]);
    expect(copy.pending.get('d/a')?.metadata.resourceVersion).toBe((await pod('a')).metadata.resourceVersion);
  });
});

describe('the options of a pass', () => {
  const closed = { gate: { reasons: [], lastTickAtMs: NOW_MS - 3_600_000 } } as never;

  it('are those of the policy while the gate is not observed', async () => {
    const off = { ...dependencies, policy: { ...defaultPolicy, schedulerGate: 'off' as const } };
    const { options, isHeld } = await cycleOptions(off, ['n'], closed);
    expect(isHeld).toBe(false);
    expect(options).toEqual({
      percentageOfNodesToScore: defaultPolicy.percentageOfNodesToScore,
      defaultTopologySpread: defaultPolicy.defaultTopologySpread,
    });
  });

  it('leave out nodes without a heartbeat while it is closed, and are recorded once', async () => {
    const held = await cycleOptions(dependencies, ['n'], closed);
    expect(held.isHeld).toBe(true);
    expect(held.options.hasRecentHeartbeat?.('n')).toBe(false);
    await cycleOptions(dependencies, ['n'], closed);
    const records = async () => (await decisionStore(items).list({ nowMs: NOW_MS, limit: 10 })).decisions.length;
    expect(await records()).toBe(1);
    const again = { gate: { reasons: [], lastTickAtMs: NOW_MS - 1_800_000 } } as never;
    await cycleOptions(dependencies, ['n'], again);
    expect(await records()).toBe(2);
  });
});
