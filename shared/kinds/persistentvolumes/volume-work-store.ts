/**
 * What the agent of a node has to do for volumes of the local provisioner: rows in the `control` table.
 *
 *   pk `volume-work#<node>` sk `provision#<namespace>/<name>`   make the volume of this claim
 *                           sk `remove#<volume>`                remove its directory, and then the volume
 *
 * A row is a reminder without content: what it asks for is decided by the claim or volume as stored. The binder writes
 * it and then reports a change in the answer to the next heartbeat of the node. Both may happen twice. The agent
 * removes a row that it has done; the API removes one that asks for nothing any more.
 *
 * Cost: two write units to ask, one to remove the row. A cluster without such volumes has no rows and reads none.
 */
import { COUNTERS, rowExists } from '../../fleet/nodes/health.ts';
import type { ItemKey, ItemStore, UpdateWrite } from '../../store/item-store.ts';
import { healthKey } from '../../store/layout.ts';

/** A machine has some ten volumes. The rest of a longer list follows when rows are removed. */
const ROWS_MAX = 100;
const PROVISION = 'provision#';
const REMOVE = 'remove#';

export type VolumeWork =
  | { readonly kind: 'provision'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'remove'; readonly name: string };

export const idOf = (work: VolumeWork): string =>
  work.kind === 'provision' ? `${PROVISION}${work.namespace}/${work.name}` : `${REMOVE}${work.name}`;

/** Undefined: it is no such id. */
export function workOf(id: string): VolumeWork | undefined {
  if (id.startsWith(REMOVE)) return { kind: 'remove', name: id.slice(REMOVE.length) };
  const slash = id.indexOf('/');
  if (!id.startsWith(PROVISION) || slash < 0) return undefined;
  return { kind: 'provision', namespace: id.slice(PROVISION.length, slash), name: id.slice(slash + 1) };
}

const keyOf = (nodeName: string, work: VolumeWork): ItemKey => ({
  table: 'control',
  pk: `volume-work#${nodeName}`,
  sk: idOf(work),
});

/** The response to the node's next beat reports it. Refused if the node has no row. */
const volumesChanged = (nodeName: string): UpdateWrite => ({
  kind: 'update',
  key: healthKey(nodeName),
  add: { [COUNTERS.volumesVersion.name]: 1 },
  when: rowExists,
});

/** The row first: a process that is killed in between has asked, and the next sync of the object reports it. */
export async function askForWork(items: Pick<ItemStore, 'write'>, nodeName: string, work: VolumeWork): Promise<void> {
  await items.write({ kind: 'put', key: keyOf(nodeName, work), item: {} });
  await items.write(volumesChanged(nodeName));
}

export async function workDone(items: Pick<ItemStore, 'write'>, nodeName: string, work: VolumeWork): Promise<void> {
  await items.write({ kind: 'delete', key: keyOf(nodeName, work) });
}

export async function volumeWorkOf(items: Pick<ItemStore, 'query'>, nodeName: string): Promise<readonly VolumeWork[]> {
  const page = await items.query({
    table: 'control',
    pk: `volume-work#${nodeName}`,
    consistent: true,
    limit: ROWS_MAX,
  });
  return page.items.flatMap(({ sk }) => workOf(String(sk)) ?? []);
}
