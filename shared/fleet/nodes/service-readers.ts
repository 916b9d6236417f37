/**
 * The nodes that route Services, in one partition of the `control` table, and how their agents learn of changes.
 *
 *   pk `service-readers` sk <node name>   uid and version of the Node, and z: its zone; absent without one
 *
 * An agent sets SERVICES_ANNOTATION on its Node. object-stream keeps the list. After a change of Services, of
 * EndpointSlices or of NetworkPolicies, workloads raises a counter in the health row of each node on the list
 * (`announceServices`). The answer to the next heartbeat has the counter, and the agent reads the change by a
 * ChangeRead.
 *
 * Calls may run twice, at once and late. Each row is written from the current Node, under a condition on the version of
 * the Node. The counter only grows: an agent that is notified twice reads once more and finds nothing. A new row raises
 * the counter, so the agent reads what changed before the row was there.
 *
 * Cost of a change: one query, and one write unit per node that is concerned. A cluster without such nodes: half a read
 * unit. At rest: nothing.
 */
import type { KubeNode } from '../../kinds/types.ts';
import {
  type Condition,
  controlPages,
  type ItemKey,
  type ItemStore,
  type UpdateWrite,
} from '../../store/item-store.ts';
import { any, changeOf, healthKey, holds, number, present, readRow, text } from '../../store/layout.ts';
import { UNBOUNDED, workThrough } from '../../ticks/bounded-work.ts';
import { COUNTERS, rowExists } from './health.ts';
import { BETA_ZONE_LABEL, ZONE_LABEL } from './node-digest.ts';

/** On a Node: its agent routes Services. The value names how, and is not evaluated. */
export const SERVICES_ANNOTATION = 'nodekeeper.dev/services';

/** In place of a zone. */
export const ALL_ZONES = '';

const PARTITION = 'service-readers';
/** Rows of a count: one page. */
export const READERS_COUNTED_MAX = 1_000;
/** Writes at a time. */
const CONCURRENCY_MAX = 16;

const ROW = {
  nodeName: present(text('sk')),
  uid: present(text('uid')),
  /** Of the Node from which the row was written. */
  resourceVersion: present(number('rv')),
  zone: text('z'),
};

type Items = Pick<ItemStore, 'query' | 'write'>;

const keyOf = (nodeName: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: nodeName });

/** Upstream's zone of an endpoint is the label's value, without the region. */
export const serviceZoneOf = (labels: KubeNode['metadata']['labels']): string | undefined =>
  labels?.[ZONE_LABEL] || labels?.[BETA_ZONE_LABEL] || undefined;

/** What the row has of a Node. Undefined: the Node is not on the list. */
export const readerPartOf = (node: KubeNode | undefined) =>
  node?.metadata.annotations?.[SERVICES_ANNOTATION] === undefined
    ? undefined
    : { uid: node.metadata.uid ?? '', zone: serviceZoneOf(node.metadata.labels) };

/** The response to the node's next beat reports it. Refused if the node has no row. */
const servicesChanged = (nodeName: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  add: { [COUNTERS.servicesVersion.name]: 1 },
  when: rowExists,
});

/**
 * Adds the Node to the list, updates its row, or removes it.
 *
 * @param changed the Node of the change
 * @param node the Node as it is stored
 */
export async function settleServiceReader(
  items: Items,
  changed: { readonly nodeName: string; readonly uid: string },
  node: KubeNode | undefined,
): Promise<void> {
  const key = keyOf(changed.nodeName);
  // It may have been created again since it was read.
  if (node === undefined) {
    await items.write({ kind: 'delete', key, when: holds(ROW.uid, changed.uid) });
    return;
  }
  const resourceVersion = Number(node.metadata.resourceVersion ?? 0);
  const { name } = ROW.resourceVersion;
  const isOlder: Condition = { kind: 'compare', attribute: name, op: '<=', value: resourceVersion };
  const part = readerPartOf(node);
  if (part === undefined) {
    await items.write({ kind: 'delete', key, when: isOlder });
    return;
  }
  const { set } = changeOf(ROW, { ...part, resourceVersion });
  const written = await items.write({ kind: 'put', key, item: set, when: any({ kind: 'itemAbsent' }, isOlder) });
  if (written.kind === 'written') await items.write(servicesChanged(changed.nodeName));
}

/**
 * How many nodes route Services: READERS_COUNTED_MAX stands for that many or more. A row follows its Node within
 * seconds. One read: half a read unit without such nodes, some 20 for the most that are counted.
 */
export async function countServiceReaders(items: Pick<ItemStore, 'query'>): Promise<number> {
  const page = await items.query({ table: 'control', pk: PARTITION, consistent: false, limit: READERS_COUNTED_MAX });
  return page.items.length;
}

/**
 * Lets the agents of these zones read what changed, and those of nodes without a zone.
 *
 * @returns how many were notified
 * @throws AggregateError if some could not be notified; the others were
 */
export async function announceServices(items: Items, zones: readonly string[]): Promise<number> {
  const concerned: string[] = [];
  const pages = controlPages(items, PARTITION, {
    consistent: true,
    tooMany: 'the list of nodes that route Services exceeds the page limit of one read',
  });
  for await (const page of pages) {
    for (const item of page) {
      const { nodeName, zone } = readRow(ROW, item);
      if (zones.includes(ALL_ZONES) || zone === undefined || zones.includes(zone)) concerned.push(nodeName);
    }
  }
  const limits = { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED };
  const { faults } = await workThrough(concerned, limits, (nodeName) => items.write(servicesChanged(nodeName)));
  if (faults.length > 0) {
    throw new AggregateError(
      faults,
      `${faults.length} of ${concerned.length} nodes could not be notified of changed Services`,
    );
  }
  return concerned.length;
}
