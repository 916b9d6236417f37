/** Compares what an `expect` wants with what is stored. */

import { defined } from '../shared/defined.ts';
import { evictionTimerStore } from '../shared/fleet/eviction-timer-store.ts';
import { fleetStore } from '../shared/fleet/fleet-store.ts';
import { readyStatusOf } from '../shared/fleet/nodes/conditions.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { clusterObjects } from '../shared/kinds/resources.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import type { Taint } from '../shared/kubernetes/kubernetes.ts';
import { recordsOf } from '../shared/kubernetes/normal-form.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import { nodeNameOf, podKey } from './cluster-view.ts';
import { formatDuration } from './duration.ts';
import { matcherOf } from './glob.ts';
import { readyOfPod } from './machine-pods.ts';
import type {
  EventExpectation,
  Expectation,
  NodeExpectation,
  PodExpectation,
  Quantity,
  TaintPattern,
  WorkloadExpectation,
  ZoneExpectation,
} from './scenario.ts';
import type { Tally } from './tally.ts';

/** One thing that is not as expected. */
export interface Mismatch {
  readonly line: number;
  /** `node a-3`, `pod default/a-3-pod-0`, `zone zone-a`, `counts`, `events`. */
  readonly subject: string;
  readonly field: string;
  readonly wanted: string;
  readonly found: string;
}

export interface StateReader {
  readonly items: ItemStore;
  readonly nowMs: number;
  readonly tally: Pick<Tally, 'tainted' | 'podsDeleted' | 'podsCreated' | 'nodesDeleted'>;
}

const LIST_PAGE = 1_000;
const LIST_PAGES_MAX = 1_000;

/** Compares one subject and reports the differences. */
function comparing(
  line: number,
  subject: string,
): {
  readonly mismatches: readonly Mismatch[];
  is(field: string, holds: boolean, wanted: string, found: string): void;
  same(field: string, wanted: string | boolean | undefined, found: string | boolean): void;
  within(field: string, wanted: Quantity | undefined, found: number | undefined, say?: (value: number) => string): void;
} {
  const mismatches: Mismatch[] = [];
  const is = (field: string, holds: boolean, wanted: string, found: string): void => {
    if (!holds) mismatches.push({ line, subject, field, wanted, found });
  };
  return {
    mismatches,
    is,
    same(field, wanted, found) {
      if (wanted !== undefined) is(field, wanted === found, String(wanted), String(found));
    },
    within(field, wanted, found, say = String) {
      if (wanted === undefined) return;
      is(field, isWithin(wanted, found), sayQuantity(wanted, say), found === undefined ? 'none' : say(found));
    },
  };
}

/** Durations and rates come of divisions: equal to a millionth. */
const NEARLY = 1e-6;
const isWithin = ({ min, max }: Quantity, value: number | undefined): boolean =>
  value !== undefined && (min === undefined || value >= min - NEARLY) && (max === undefined || value <= max + NEARLY);

function sayQuantity({ min, max }: Quantity, say: (value: number) => string): string {
  if (min === max && min !== undefined) return say(min);
  if (min === undefined) return max === undefined ? 'any' : `at most ${say(max)}`;
  return max === undefined ? `at least ${say(min)}` : `${say(min)} to ${say(max)}`;
}

async function listAll(items: ItemStore, resource: string): Promise<KubeObject[]> {
  const objects = clusterObjects({
    items,
    clock: { nowMs: () => 0 },
    random: { fraction: () => 0, uuid: () => '' },
  });
  const found: KubeObject[] = [];
  let continueAfter: string | undefined;
  for (let pages = 0; pages < LIST_PAGES_MAX; pages += 1) {
    const page = await objects.list({
      resource,
      limit: LIST_PAGE,
      ...defined({ continueAfter }),
    });
    found.push(...page.objects);
    if (page.next === undefined) return found;
    continueAfter = page.next;
  }
  throw new Error(`more ${resource} than one read returns`);
}

/** The objects a pattern picks; the mismatch when it picks none and should, or some and should not. */
function picked<T extends KubeObject>(
  of: { readonly pattern: string; readonly line: number; readonly exists: boolean | undefined },
  kind: 'node' | 'pod',
  objects: readonly T[],
  nameOf: (object: T) => string,
): { readonly matching: readonly T[]; readonly mismatches: readonly Mismatch[] } {
  const matches = matcherOf(of.pattern);
  const matching = objects.filter((object) => matches(nameOf(object)));
  if (of.exists === false) {
    const mismatches = matching.map(
      (object): Mismatch => ({
        line: of.line,
        subject: `${kind} ${nameOf(object)}`,
        field: 'exists',
        wanted: 'false',
        found: 'true',
      }),
    );
    return { matching: [], mismatches };
  }
  if (matching.length > 0) return { matching, mismatches: [] };
  const subject = `${kind} ${of.pattern}`;
  return {
    matching,
    mismatches: [{ line: of.line, subject, field: 'exists', wanted: 'true', found: 'nothing matches' }],
  };
}

export const describeTaint = ({
  key,
  value,
  effect,
}: {
  key: string;
  value?: string | undefined;
  effect?: string | undefined;
}) => `${key}${value === undefined || value === '' ? '' : `=${value}`}${effect === undefined ? '' : `:${effect}`}`;
const sayTaints = (taints: readonly (Taint | TaintPattern)[]): string =>
  taints.length === 0 ? 'none' : taints.map(describeTaint).sort().join(', ');

export const matchesTaint = (pattern: TaintPattern, taint: Taint): boolean =>
  taint.key === pattern.key &&
  (pattern.effect === undefined || taint.effect === pattern.effect) &&
  (pattern.value === undefined || (taint.value ?? '') === pattern.value);

/** Exactly these, in any order: every taint has its pattern and every pattern its taint. */
const exactly = (patterns: readonly TaintPattern[], taints: readonly Taint[]): boolean =>
  patterns.length === taints.length &&
  patterns.every((pattern) => taints.some((taint) => matchesTaint(pattern, taint))) &&
  taints.every((taint) => patterns.some((pattern) => matchesTaint(pattern, taint)));

function checkNode(wanted: NodeExpectation, node: KubeNode): readonly Mismatch[] {
  const { mismatches, is, same } = comparing(wanted.line, `node ${node.metadata.name}`);
  const conditions = node.status?.conditions ?? [];
  const statusOf = (type: string): string =>
    conditions.find((condition) => condition.type === type)?.status ?? 'absent';
  const taints = node.spec?.taints ?? [];
  same('ready', wanted.ready, statusOf('Ready'));
  same('reason', wanted.reason, conditions.find(({ type }) => type === 'Ready')?.reason ?? 'absent');
  same('unschedulable', wanted.unschedulable, node.spec?.unschedulable === true);
  if (wanted.taints !== undefined) {
    is('taints', exactly(wanted.taints, taints), sayTaints(wanted.taints), sayTaints(taints));
  }
  for (const pattern of wanted.hasTaints ?? []) {
    is(
      'hasTaints',
      taints.some((taint) => matchesTaint(pattern, taint)),
      describeTaint(pattern),
      sayTaints(taints),
    );
  }
  for (const pattern of wanted.lacksTaints ?? []) {
    is(
      'lacksTaints',
      !taints.some((taint) => matchesTaint(pattern, taint)),
      `no ${describeTaint(pattern)}`,
      sayTaints(taints),
    );
  }
  if (wanted.podCIDRs !== undefined) {
    const found = node.spec?.podCIDRs ?? [];
    same('podCIDRs', wanted.podCIDRs.join(', ') || 'none', found.join(', ') || 'none');
  }
  for (const [label, value] of Object.entries(wanted.labels ?? {})) {
    same(`labels[${label}]`, value, node.metadata.labels?.[label] ?? 'absent');
  }
  for (const [type, status] of Object.entries(wanted.conditions ?? {}))
    same(`conditions.${type}`, status, statusOf(type));
  return mismatches;
}

async function checkPod(
  wanted: PodExpectation,
  pod: KubeObject,
  { items, nowMs }: StateReader,
): Promise<readonly Mismatch[]> {
  const { mismatches, is, same, within } = comparing(wanted.line, `pod ${podKey(pod)}`);
  same('deleting', wanted.deleting, pod.metadata.deletionTimestamp !== undefined);
  same('phase', wanted.phase, String(pod.status?.['phase'] ?? 'absent'));
  same('ready', wanted.ready, readyOfPod(pod));
  const nodeName = nodeNameOf(pod);
  if (wanted.node !== undefined) {
    const found = nodeName === '' ? 'none' : nodeName;
    is('node', wanted.node === found || (nodeName !== '' && matcherOf(wanted.node)(nodeName)), wanted.node, found);
  }
  if (wanted.evictionDueIn === undefined) return mismatches;
  const { timers } = nodeName === '' ? { timers: [] } : await evictionTimerStore(items).read(nodeName);
  const timer = timers.find(({ podUid }) => podUid === pod.metadata.uid);
  const dueInMs = timer === undefined ? undefined : timer.atMs - nowMs;
  if (wanted.evictionDueIn !== 'none') within('evictionDueIn', wanted.evictionDueIn, dueInMs, formatDuration);
  else is('evictionDueIn', dueInMs === undefined, 'no timer', dueInMs === undefined ? 'none' : formatDuration(dueInMs));
  return mismatches;
}

const controllerUidOf = ({ metadata }: KubeObject): string =>
  metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? '';

/** Names that the kinds have for the same count. */
const STATUS_COUNTS = {
  ready: ['readyReplicas', 'numberReady', 'ready'],
  available: ['availableReplicas', 'numberAvailable'],
  updated: ['updatedReplicas', 'updatedNumberScheduled'],
} as const;

async function checkWorkloads(
  wanted: readonly WorkloadExpectation[],
  { items }: StateReader,
): Promise<readonly Mismatch[]> {
  if (wanted.length === 0) return [];
  const [pods, nodes, sets] = await Promise.all(['pods', 'nodes', 'replicasets'].map((each) => listAll(items, each)));
  const zoneOf = (pod: KubeObject): string =>
    nodes?.find(({ metadata }) => metadata.name === nodeNameOf(pod))?.metadata.labels?.[ZONE_LABEL] ?? '';
  const found = new Map<string, readonly KubeObject[]>();
  for (const resource of new Set(wanted.map((each) => each.resource)))
    found.set(resource, await listAll(items, resource));
  return wanted.flatMap((each) => {
    const object = found
      .get(each.resource)
      ?.find(({ metadata }) => metadata.namespace === each.namespace && metadata.name === each.name);
    const { mismatches, same, within } = comparing(each.line, each.subject);
    same('exists', each.exists ?? true, object !== undefined);
    if (object === undefined) return mismatches;
    // A Deployment controls its pods through ReplicaSets.
    const ofDeployment = sets?.filter((set) => controllerUidOf(set) === object.metadata.uid) ?? [];
    const owners = new Set([object, ...ofDeployment].map(({ metadata }) => metadata.uid));
    const own = pods?.filter((pod) => owners.has(controllerUidOf(pod))) ?? [];
    const terminating = own.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    const active = own.filter(
      (pod) => !terminating.includes(pod) && !['Succeeded', 'Failed'].includes(String(pod.status?.['phase'])),
    );
    for (const [field, names] of Object.entries(STATUS_COUNTS)) {
      const count = names.map((name) => object.status?.[name]).find((value) => value !== undefined);
      within(field, each[field as keyof typeof STATUS_COUNTS], Number(count ?? 0));
    }
    within('pods', each.pods, active.length);
    within('terminating', each.terminating, terminating.length);
    for (const [zone, quantity] of Object.entries(each.zones ?? {})) {
      within(`zones[${zone}]`, quantity, active.filter((pod) => zoneOf(pod) === zone).length);
    }
    const conditions = recordsOf(object.status?.['conditions']);
    for (const [type, status] of Object.entries(each.conditions ?? {})) {
      same(
        `conditions.${type}`,
        status,
        String(conditions.find((one) => one['type'] === type)?.['status'] ?? 'absent'),
      );
    }
    return mismatches;
  });
}

async function checkZones(wanted: readonly ZoneExpectation[], items: ItemStore): Promise<Mismatch[]> {
  if (wanted.length === 0) return [];
  const { zones, queue } = await fleetStore(items).read();
  return wanted.flatMap((each) => {
    const { mismatches, is, same, within } = comparing(each.line, `zone ${each.zone === '' ? '""' : each.zone}`);
    const record = zones.find(({ zone }) => zone === each.zone);
    if (record === undefined) {
      is(
        'state',
        false,
        each.state ?? 'a known zone',
        `no such zone; there are ${zones.map(({ zone }) => `"${zone}"`).join(', ') || 'none'}`,
      );
      return mismatches;
    }
    same('state', each.state, record.state ?? 'absent');
    within('evictionRatePerSecond', each.evictionRatePerSecond, record.limiter.ratePerSecond);
    within('queued', each.queued, queue.filter(({ zone }) => zone === each.zone).length);
    return mismatches;
  });
}

function checkEvent(wanted: EventExpectation, events: readonly KubeObject[]): readonly Mismatch[] {
  const said = [wanted.kind, wanted.name, wanted.reason].filter((part) => part !== undefined).join(' ');
  const { mismatches, within } = comparing(wanted.line, `events ${said}`.trim());
  const matches = matcherOf(wanted.name ?? '*');
  let occurrences = 0;
  for (const event of events) {
    const about = (event['involvedObject'] ?? {}) as { readonly kind?: string; readonly name?: string };
    if (wanted.kind !== undefined && about.kind !== wanted.kind) continue;
    if (wanted.reason !== undefined && event['reason'] !== wanted.reason) continue;
    if (!matches(about.name ?? '')) continue;
    occurrences += typeof event['count'] === 'number' ? event['count'] : 1;
  }
  within('count', wanted.count ?? { min: 1, max: undefined }, occurrences);
  return mismatches;
}

export async function checkExpectation(wanted: Expectation, state: StateReader): Promise<readonly Mismatch[]> {
  const { items, tally } = state;
  const wantsNotReady = wanted.counts.some(({ count }) => count === 'notReady');
  const nodes = wanted.nodes.length > 0 || wantsNotReady ? ((await listAll(items, 'nodes')) as KubeNode[]) : [];
  const pods = wanted.pods.length > 0 ? await listAll(items, 'pods') : [];
  const events = wanted.events.length > 0 ? await listAll(items, 'events') : [];
  const mismatches: Mismatch[] = [];
  for (const each of wanted.nodes) {
    const { matching, mismatches: absent } = picked(each, 'node', nodes, (node) => node.metadata.name ?? '');
    mismatches.push(...absent, ...matching.flatMap((node) => checkNode(each, node)));
  }
  for (const each of wanted.pods) {
    const { matching, mismatches: absent } = picked(each, 'pod', pods, podKey);
    mismatches.push(...absent);
    for (const pod of matching) mismatches.push(...(await checkPod(each, pod, state)));
  }
  mismatches.push(...(await checkWorkloads(wanted.workloads, state)));
  mismatches.push(...(await checkZones(wanted.zones, items)));
  for (const { count, wanted: quantity, line } of wanted.counts) {
    const { mismatches: found, within } = comparing(line, 'counts');
    const notReady = (): number => nodes.filter((node) => readyStatusOf(node.status?.conditions) !== 'True').length;
    within(count, quantity, count === 'notReady' ? notReady() : tally[count]);
    mismatches.push(...found);
  }
  for (const each of wanted.events) mismatches.push(...checkEvent(each, events));
  return mismatches;
}
