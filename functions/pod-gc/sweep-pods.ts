/**
 * A periodic sweep over all pods, page by page, that repairs the work list. Without it a stream record that was dropped
 * after its retries would leave a pod for ever. The sweep only writes hints; ticks evaluate them like all others.
 *
 * Cost: one read unit per 4 KB of pods (strongly consistent), and half a unit per 4 KB of node rows.
 */

import { defined } from '../../shared/defined.ts';
import { EBS_DRIVER } from '../../shared/fleet/nodes/attached-volumes.rule.ts';
import { readHealth, scanHealth } from '../../shared/fleet/nodes/health-store.ts';
import { isSweepDue, listedPod } from '../../shared/kinds/pods/collection.rule.ts';
import { nodeNameOf } from '../../shared/kinds/pods/maintain-work-list.ts';
import type { ListedPod, PodGcList } from '../../shared/kinds/pods/work-list-store.ts';
import type { ObjectRef } from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { objectSortKey } from '../../shared/store/layout.ts';
import { type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import type { PodGcDependencies } from './dependencies.ts';
import { listAttachments } from './volumes/list-attachments.ts';

const SWEEP_EVERY_SECONDS = 900;
const PODS_PER_PAGE = 500;
/** 10,000 pods; more are swept over several passes. */
const PAGES_PER_TICK_MAX = 20;
const WRITES_CONCURRENCY_MAX = 16;

interface SweptPods {
  /** Rows that were missing, wrong or left behind. */
  readonly repaired: number;
  readonly faults: readonly unknown[];
}

const keyOf = ({ namespace = '', name = '' }: { readonly namespace?: string; readonly name?: string }): string =>
  objectSortKey(namespace, name);

export async function sweepPods(
  dependencies: PodGcDependencies,
  list: PodGcList,
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<SweptPods> {
  if (!isSweepDue(list, nowMs) || !budget.hasTime()) return { repaired: 0, faults: [] };
  const { objects, items, podGc, fleet } = dependencies;
  const { nodes: rowsExpected } = await fleet.readState();
  // A stale read only adds a hint about a node that exists; the next tick reads again.
  const nodes = await scanHealth(items, { consistent: false, rowsExpected });
  const ready = new Map(nodes.map((node) => [node.nodeName, node.ready]));
  const writes: (() => Promise<unknown>)[] = [];
  let after = list.sweep?.after;
  if (after === undefined) {
    for (const nodeName of await nodesWithVolumesInDoubt(dependencies, ready)) {
      if (!list.volumes.some((each) => each.nodeName === nodeName)) {
        writes.push(() => podGc.askVolumes(nodeName, nowMs));
      }
    }
  }
  const rows = new Map(list.pods.map((row) => [keyOf(row), row]));
  const strangers = new Set<string>();
  let done = false;
  for (let pages = 0; pages < PAGES_PER_TICK_MAX && !done && budget.hasTime(); pages += 1) {
    const page = await objects.list({
      resource: 'pods',
      limit: PODS_PER_PAGE,
      ...defined({ continueAfter: after }),
    });
    const seen = new Set<string>();
    for (const pod of page.objects) {
      const key = keyOf(pod.metadata);
      seen.add(key);
      const wanted = listedPod(pod);
      if (wanted !== undefined && !jsonEqual(wanted, rows.get(key) ?? null)) writes.push(() => podGc.putPod(wanted));
      if (wanted === undefined && rows.has(key)) seen.delete(key);
      const nodeName = nodeNameOf(pod);
      if (nodeName !== '' && !ready.has(nodeName) && !list.missing.has(nodeName)) strangers.add(nodeName);
    }
    const left = rowsBetween(rows, after, page.next).filter(([key]) => !seen.has(key));
    for (const [, row] of left) writes.push(() => dropIfUnlisted(dependencies, row));
    after = page.next;
    done = page.next === undefined;
  }
  const found = await readHealth(items, [...strangers]);
  for (const nodeName of strangers) if (!found.has(nodeName)) writes.push(() => podGc.putMissing(nodeName, nowMs));
  const { faults } = await workThrough(
    writes,
    { concurrencyMax: WRITES_CONCURRENCY_MAX, budget: { hasTime: () => true } },
    (write) => write(),
  );
  // A row that could not be written is found again by the next sweep.
  await podGc.saveSweep(
    done ? { dueAtMs: nowMs + SWEEP_EVERY_SECONDS * 1_000, after: undefined } : { dueAtMs: nowMs, after },
  );
  if (writes.length > 0) dependencies.log.info('work list of pod-gc was repaired', { rows: writes.length });
  return { repaired: writes.length, faults };
}

/** Rows in the key range of one page. */
const rowsBetween = (
  rows: ReadonlyMap<string, ListedPod>,
  after: string | undefined,
  through: string | undefined,
): [string, ListedPod][] =>
  [...rows].filter(([key]) => (after === undefined || key > after) && (through === undefined || key <= through));

async function dropIfUnlisted({ objects, podGc }: PodGcDependencies, row: ListedPod): Promise<void> {
  const ref: ObjectRef = { resource: 'pods', namespace: row.namespace, name: row.name };
  const wanted = listedPod(await objects.get(ref));
  if (wanted === undefined) await podGc.dropPod(row);
}

/**
 * Volumes of a healthy node are never detached. A node that turns unhealthy is found by the next sweep at the latest.
 */
async function nodesWithVolumesInDoubt(
  { objects }: PodGcDependencies,
  ready: ReadonlyMap<string, unknown>,
): Promise<ReadonlySet<string>> {
  const attachments = await listAttachments(objects);
  const ofEbs = attachments.filter((attachment) => attachment.spec?.attacher === EBS_DRIVER);
  const names = ofEbs.map((attachment) => String(attachment.spec?.nodeName ?? ''));
  return new Set(names.filter((nodeName) => nodeName !== '' && ready.get(nodeName) !== 'True'));
}
