/**
 * Law L18: what one more change costs does not grow with what is stored. A user changes objects of a kind in a
 * small cluster and in one with four times as many objects. Items that the API and the functions read and write for it
 * are counted, so the verdict is the same on every machine.
 *
 * Changes come in bursts, as one batch of the stream. What is read once per batch, or once in a while, is no part of
 * the cost of one more change.
 */
import { expect, it } from 'vitest';
import { passesObjectFilter } from '../../server/changes/change-filters.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { MERGE } from '../support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../support/application-objects.ts';
import { servedWorkloads } from '../support/served-workloads.ts';

const OBJECTS = 20;
const GROWTH = 4;
const STEP_MS = 5_000;
/** Steps of a measurement: longer than what is stored as due after a change. */
const STEPS = 8;
const FEW = 1;
const MANY = 5;
/** Of the time in the key of a due row. */
const DUE_DIGITS = 14;
/** Items that one change may read and write more among GROWTH times as many objects. */
const MORE_ITEMS_MAX = 10;

type Cluster = Awaited<ReturnType<typeof clusterOf>>;

/** Counts the items that are read and written. */
function countingStore() {
  const count = { items: 0 };
  const store = (items: ItemStore): ItemStore => ({
    ...items,
    async get(...args) {
      count.items += 1;
      return items.get(...args);
    },
    async getMany(keys, options) {
      count.items += keys.length;
      return items.getMany(keys, options);
    },
    async query(request) {
      const page = await items.query(request);
      count.items += 1 + page.items.length;
      return page;
    },
    async scan(request) {
      const page = await items.scan(request);
      count.items += 1 + page.items.length;
      return page;
    },
    async write(...args) {
      count.items += 1;
      return items.write(...args);
    },
    async transact(writes, ...more) {
      count.items += writes.length;
      return items.transact(writes, ...more);
    },
  });
  return { count, store };
}

const NAMESPACE = '/api/v1/namespaces/default';
const container = { name: 'main', image: 'registry.example/app:1' };
const template = (labels: object) => ({ metadata: { labels }, spec: { containers: [container] } });

/** Where objects of a kind are created in namespace `default`. */
function pathOf(resource: string): string {
  const descriptor = resources.find((each) => each.resource === resource && each.servedFrom === undefined);
  if (descriptor === undefined) throw new Error(`no kind ${resource}`);
  const { group, version, namespaced } = descriptor;
  return `${group === '' ? '/api' : `/apis/${group}`}/${version}/${namespaced ? 'namespaces/default/' : ''}${resource}`;
}

/** A settled cluster with so many objects of each kind that applications have, each with labels of its own. */
async function clusterOf(objects: number) {
  const { count, store } = countingStore();
  const cluster = servedWorkloads({ apiStore: store, controllerStore: store });
  const queue = queueStore(cluster.items);
  let seen = 0;
  async function settle(): Promise<void> {
    for (let round = 0; round < 20; round += 1) {
      const batches = await cluster.settle();
      const changes = cluster.items.changes('objects', seen);
      seen = changes.at(-1)?.sequence ?? seen;
      const { faults, postponed } = await cluster.controllers.onObjectRecords(changes.filter(passesObjectFilter));
      if (faults.length + postponed.length > 0) throw new AggregateError([...faults, ...postponed], 'faults');
      const nowMs = cluster.api.nowMs();
      const { wanted, done } = await queue.peek();
      // A pass for the time that a pod has waited is not counted here.
      if (wanted > done) await cluster.controllers.tickScheduler(Math.floor(nowMs / STEP_MS));
      if (batches === 0 && changes.length === 0) return;
    }
    throw new Error('the functions do not settle');
  }
  async function step(): Promise<void> {
    await cluster.tickAfter(STEP_MS);
    await settle();
  }
  /** Until no sweep of all workloads is due during a measurement. */
  async function passSweep(): Promise<void> {
    for (let steps = 0; steps < 2 * STEPS; steps += 1) {
      const { items } = await cluster.items.query({ table: 'control', pk: 'workloads-due', consistent: true });
      const sweep = items.find(({ sk }) => String(sk).endsWith('#sweep'));
      const dueMs = Number(String(sweep?.['sk']).slice(0, DUE_DIGITS));
      if (dueMs > cluster.api.nowMs() + 2 * STEPS * STEP_MS) return;
      await step();
    }
    throw new Error('the sweep does not end');
  }
  for (let index = 0; index < objects; index += 1) {
    const own = { group: `g${index}` };
    const name = `w${index}`;
    const pod = { metadata: { name, labels: own }, spec: { nodeName: name, containers: [container] } };
    const waiting = {
      metadata: { name: `u${index}` },
      spec: { ...pod.spec, nodeName: '', nodeSelector: { no: 'node' } },
    };
    const workload = { selector: { matchLabels: own }, template: template(own), replicas: 0 };
    const jobTemplate = { spec: { template: { spec: { containers: [container], restartPolicy: 'Never' } } } };
    const world: [string, object][] = [
      ['nodes', { metadata: { name } }],
      ['pods', pod],
      ['pods', waiting],
      ['configmaps', { metadata: { name } }],
      ['secrets', { metadata: { name } }],
      ['services', { metadata: { name }, spec: { selector: own, ports: [{ port: 80 }] } }],
      ['poddisruptionbudgets', { metadata: { name }, spec: { minAvailable: 1, selector: { matchLabels: own } } }],
      ['deployments', { metadata: { name }, spec: workload }],
      ['statefulsets', { metadata: { name }, spec: { ...workload, serviceName: 's' } }],
      ['jobs', { metadata: { name }, spec: { ...jobTemplate.spec, suspend: true } }],
      ['cronjobs', { metadata: { name }, spec: { schedule: '0 0 1 1 *', suspend: true, jobTemplate } }],
      ['serviceaccounts', { metadata: { name } }],
      ['roles', { metadata: { name }, rules: [] }],
      ['rolebindings', { metadata: { name }, ...APPLICATION_OBJECTS['rolebindings'] }],
      ['namespaces', { metadata: { name } }],
    ];
    for (const [resource, body] of world) await cluster.ok('POST', pathOf(resource), body);
  }
  for (let index = 0; index < 3 * STEPS; index += 1) await step();
  return { ...cluster, count, step, passSweep };
}

interface Family {
  readonly name: string;
  change(cluster: Cluster, number: number): Promise<unknown>;
  undo?(cluster: Cluster, number: number): Promise<unknown>;
}

const SPECS: Readonly<Record<string, object>> = {
  ...APPLICATION_OBJECTS,
  daemonsets: { spec: { ...(APPLICATION_OBJECTS['deployments'] as { spec: object }).spec } },
  namespaces: {},
  nodes: {},
  pods: { spec: { containers: [container], nodeSelector: { no: 'node' } } },
  poddisruptionbudgets: { spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } } },
  priorityclasses: { value: 5 },
};

/** With labels of its own: no other object selects its pods. No pod of a workload is scheduled. */
const ownSpec = (resource: string, name: string): object =>
  JSON.parse(JSON.stringify(SPECS[resource]).replaceAll('"app":"a"', `"app":"${name}"`), (key, value) =>
    key === 'template' && value.spec !== undefined
      ? { ...value, spec: { ...value.spec, schedulerName: 'other' } }
      : value,
  ) as object;

/** Created and changed, and later deleted. */
function lifetime(resource: string): Family {
  const path = pathOf(resource);
  const nameOf = (number: number) => `f${number}`;
  return {
    name: resource,
    async change({ api, ok }, number) {
      const name = nameOf(number);
      await ok('POST', path, { ...ownSpec(resource, name), metadata: { name, labels: { app: name } } });
      const body = { metadata: { annotations: { changed: '1' } } };
      await api.send('PATCH', `${path}/${name}`, { body, contentType: MERGE });
    },
    undo: ({ ok }, number) => ok('DELETE', `${path}/${nameOf(number)}`, { gracePeriodSeconds: 0 }),
  };
}

const patched = (name: string, path: string, body: (number: number) => object): Family => ({
  name,
  async change({ api }, number) {
    const answer = await api.send('PATCH', path, { body: body(number), contentType: MERGE });
    if (answer.code !== 200) throw new Error(`${name}: ${answer.text}`);
  },
});

/**
 * Each reads all pods of its namespace; a claim only when it is deleted. Counts that read over 5,000 objects are spaced
 * (object-lists.ts).
 */
const COUNTS = {
  persistentvolumeclaims: 'waits for the pods that use it',
  poddisruptionbudgets: 'counts the pods that it selects',
  resourcequotas: 'counts what the namespace has',
  services: 'writes the addresses of the pods that it selects',
} as const;

const FAMILIES: readonly Family[] = [
  ...Object.keys(SPECS).map(lifetime),
  patched('label of a node', '/api/v1/nodes/w1', (number) => ({ metadata: { labels: { changed: String(number) } } })),
  patched('taint of a node', '/api/v1/nodes/w1', (number) => ({
    spec: { taints: [{ key: 'changed', value: String(number), effect: 'NoSchedule' }] },
  })),
  patched('annotation of a pod', `${NAMESPACE}/pods/w1`, (number) => ({
    metadata: { annotations: { changed: String(number) } },
  })),
  patched('address of a pod', `${NAMESPACE}/pods/w1/status`, (number) => ({
    status: { podIP: `10.0.0.${number % 250}`, podIPs: [{ ip: `10.0.0.${number % 250}` }] },
  })),
  patched('label of a waiting pod', `${NAMESPACE}/pods/u1`, (number) => ({
    metadata: { labels: { changed: String(number) } },
  })),
];

interface Burst {
  readonly changes: number;
  readonly first: number;
}

async function changeAll(cluster: Cluster, family: Family, { changes, first }: Burst): Promise<void> {
  const numbers = Array.from({ length: changes }, (_, index) => first + index);
  for (const number of numbers) await family.change(cluster, number);
  for (let step = 0; step < STEPS; step += 1) await cluster.step();
  if (family.undo === undefined) return;
  for (const number of numbers) await family.undo(cluster, number);
  for (let step = 0; step < 2; step += 1) await cluster.step();
}

/** Items of a burst of so many changes, and of what follows. */
async function itemsOf(cluster: Cluster, family: Family, burst: Burst): Promise<number> {
  await cluster.passSweep();
  const before = cluster.count.items;
  await changeAll(cluster, family, burst);
  return cluster.count.items - before;
}

async function perChange(cluster: Cluster, family: Family): Promise<number> {
  // What the first change makes known is no cost of the next ones.
  await changeAll(cluster, family, { changes: 1, first: 0 });
  const few = await itemsOf(cluster, family, { changes: FEW, first: 1 });
  const many = await itemsOf(cluster, family, { changes: MANY, first: 1 + FEW });
  return (many - few) / (MANY - FEW);
}

/** The families that cost more in the large cluster, and the largest ratio of the others. */
async function verdictOn(families: readonly Family[], small: Cluster, large: Cluster) {
  const grows: string[] = [];
  let worst = { name: '', ratio: 0 };
  for (const family of families) {
    const [one, other] = [await perChange(small, family), await perChange(large, family)];
    if (other > one + MORE_ITEMS_MAX) grows.push(family.name);
    else if (other / one > worst.ratio) worst = { name: family.name, ratio: other / one };
  }
  return { grows, worst };
}

it('what a change costs does not grow with what is stored (L18)', { timeout: 300_000 }, async () => {
  const [small, large] = [await clusterOf(OBJECTS), await clusterOf(GROWTH * OBJECTS)];
  const { grows, worst } = await verdictOn(FAMILIES, small, large);
  console.log(`L18: ${FAMILIES.length} families, worst ratio ${worst.ratio.toFixed(2)} (${worst.name})`);
  expect(grows.toSorted()).toEqual(Object.keys(COUNTS));
  const planted: Family = { name: 'reads all', change: ({ ok }) => ok('GET', pathOf('configmaps')) };
  expect((await verdictOn([planted], small, large)).grows).toEqual(['reads all']);
});
