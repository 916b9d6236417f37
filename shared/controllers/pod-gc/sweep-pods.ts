/**
 * A look at all pods now and then, page by page, that mends the work list: a record of the stream that was dropped after its
 * retries must not leave a pod for ever. It only writes hints; passes judge them as all others.
 *
 * Cost: a read unit for each 4 KB of pods, which are read strongly consistent, and half of one for each 4 KB of nodes' rows.
 */

import type { KubeObject, ObjectRef } from '../../kube/types.ts';
import { jsonEqual } from '../../kube/wire/json-value.ts';
import { readHealth, scanHealth } from '../../store/health-store.ts';
import { objectSortKey } from '../../store/layout.ts';
import { type WorkBudget, workThrough } from '../framework/bounded-work.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { EBS_DRIVER } from '../volume-detacher/attached-volumes.rule.ts';
import { listAttachments } from '../volume-detacher/list-attachments.ts';
import { listedPod } from './collectable-pods.ts';
import { nodeNameOf } from './maintain-work-list.ts';
import type { ListedPod, PodGcList } from './work-list-store.ts';

const SWEEP_EVERY_SECONDS = 900;
const PODS_A_PAGE = 500;
/** 10,000 pods; more are swept over several passes. */
const PAGES_A_PASS_MAX = 20;
const WRITES_AT_ONCE_MAX = 16;

interface SweptPods {
  /** Rows that were missing, wrong or left behind. */
  readonly mended: number;
  readonly faults: readonly unknown[];
}

const keyOf = ({ namespace = '', name = '' }: { readonly namespace?: string; readonly name?: string }): string =>
  objectSortKey(namespace, name);

export const isSweepDue = ({ sweep }: PodGcList, nowMs: number): boolean =>
  sweep === undefined || sweep.dueAtMs <= nowMs;

export async function sweepPods(
  dependencies: ControllerDependencies,
  list: PodGcList,
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<SweptPods> {
  if (!isSweepDue(list, nowMs) || !budget.hasTime()) return { mended: 0, faults: [] };
  const { objects, items, podGc, fleet } = dependencies;
  const { nodes: rowsExpected } = await fleet.readState();
  // Late reads at most hint at a node that is there; the pass asks again.
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
  for (let pages = 0; pages < PAGES_A_PASS_MAX && !done && budget.hasTime(); pages += 1) {
    const page = await objects.list({
      resource: 'pods',
      limit: PODS_A_PAGE,
      ...(after === undefined ? {} : { continueAfter: after }),
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
    { concurrencyMax: WRITES_AT_ONCE_MAX, budget: { hasTime: () => true } },
    (write) => write(),
  );
  // What could not be written is found again at the next sweep.
  await podGc.saveSweep(
    done ? { dueAtMs: nowMs + SWEEP_EVERY_SECONDS * 1_000, after: undefined } : { dueAtMs: nowMs, after },
  );
  if (writes.length > 0) dependencies.log.info('the list of pods to collect was mended', { rows: writes.length });
  return { mended: writes.length, faults };
}

/** Rows of the stretch of keys that a page covers. */
const rowsBetween = (
  rows: ReadonlyMap<string, ListedPod>,
  after: string | undefined,
  through: string | undefined,
): [string, ListedPod][] =>
  [...rows].filter(([key]) => (after === undefined || key > after) && (through === undefined || key <= through));

async function dropIfUnlisted({ objects, podGc }: ControllerDependencies, row: ListedPod): Promise<void> {
  const ref: ObjectRef = { resource: 'pods', namespace: row.namespace, name: row.name };
  const wanted = listedPod(await objects.get(ref));
  if (wanted === undefined) await podGc.dropPod(row);
}

/** Of a healthy node nothing is taken, and those that turn unhealthy are found by the next sweep at the latest. */
async function nodesWithVolumesInDoubt(
  { objects }: ControllerDependencies,
  ready: ReadonlyMap<string, unknown>,
): Promise<ReadonlySet<string>> {
  const attachments = await listAttachments(objects);
  const ofEbs = attachments.filter((attachment: KubeObject) => attachment.spec?.['attacher'] === EBS_DRIVER);
  const names = ofEbs.map((attachment) => String(attachment.spec?.['nodeName'] ?? ''));
  return new Set(names.filter((nodeName) => nodeName !== '' && ready.get(nodeName) !== 'True'));
}
