import { beforeEach, describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type WorkDependencies, workDependencies } from '../../shared/ticks/dependencies.ts';
import { clearNominations, deleteVictims, readBudgets } from './preempt-pods.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

let items: MemoryItemStore;
let dependencies: WorkDependencies;
let metrics: [string, number][];
beforeEach(() => {
  let uuids = 0;
  metrics = [];
  items = memoryItemStore();
  const silent = () => {};
  dependencies = workDependencies({
    items,
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => `e${uuids++}`, fraction: () => 0 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: (name, value) => void metrics.push([name, value]) },
  });
});

async function create<T extends KubeObject>(resource: string, object: T): Promise<T> {
  const { namespace = '', name = '' } = object.metadata;
  const outcome = await dependencies.objects.commit({
    writes: [{ kind: 'create', ref: { resource, namespace, name }, object }],
  });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.objects[0] as T;
}
const READY: KubePod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
interface PodParts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly status?: KubePod['status'];
  readonly deletionTimestamp?: string;
}
const createPod = (name: string, { namespace = 'd', status = READY, ...metadata }: PodParts = {}): Promise<KubePod> =>
  create('pods', {
    kind: 'Pod',
    metadata: { namespace, name, uid: `uid-${name}`, ...metadata },
    spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] },
    status,
  } as KubePod);
const pod = (name: string) =>
  dependencies.objects.get({ resource: 'pods', namespace: 'd', name }) as Promise<KubePod | undefined>;

describe('the budgets of a preemption', () => {
  const budgetOf = (
    name: string,
    spec: Record<string, unknown>,
    more: { readonly namespace?: string; readonly status?: Record<string, unknown> } = {},
  ) =>
    create('poddisruptionbudgets', {
      kind: 'PodDisruptionBudget',
      metadata: { namespace: more.namespace ?? 'd', name, uid: name },
      spec,
      ...(more.status && { status: more.status }),
    });

  it('are counted from the pods of their own namespaces', async () => {
    const labels = { app: 'web' };
    for (const name of ['a', 'b', 'c']) await createPod(name, { labels });
    await createPod('unready', { labels, status: { phase: 'Running' } });
    await createPod('d', { namespace: 'other', labels });
    await budgetOf('web', { minAvailable: 1, selector: { matchLabels: labels } });
    await budgetOf('strict', { minAvailable: 3, selector: { matchLabels: labels } });
    await budgetOf('other', { maxUnavailable: 1, selector: { matchLabels: labels } }, { namespace: 'other' });
    const listed: string[] = [];
    const objects: WorkDependencies['objects'] = {
      ...dependencies.objects,
      list(query) {
        listed.push(`${query.resource} ${query.namespace}`);
        return dependencies.objects.list(query);
      },
    };
    const budgets = await readBudgets({ objects });
    // Two budgets of one namespace need its pods once.
    expect(listed.toSorted()).toEqual(['poddisruptionbudgets ', 'pods d', 'pods other']);
    expect(budgets.map(({ namespace, allowed }) => [namespace, allowed]).sort()).toEqual([
      ['d', 0],
      ['d', 2],
      ['other', 1],
    ]);
  });

  it.each<[object | undefined, boolean, boolean]>([
    [undefined, false, false],
    [{}, false, false],
    [{ matchLabels: {}, matchExpressions: [] }, false, false],
    [{ matchLabels: { app: 'web' } }, true, false],
    [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true, false],
    [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false, true],
    [{ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'x', operator: 'Exists' }] }, false, false],
    [{ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true, false],
  ])('with the selector %j match a pod of the app: %s, one without labels: %s', async (selector, web, bare) => {
    await budgetOf('b', { minAvailable: 1, ...(selector && { selector }) });
    const [budget] = await readBudgets(dependencies);
    expect([budget!.matches({ app: 'web' }), budget!.matches({})]).toEqual([web, bare]);
  });

  it('name the pods with a disruption that is counted already', async () => {
    await budgetOf('b', { minAvailable: 1 }, { status: { disruptedPods: { gone: '2026-01-01T00:00:00Z' } } });
    await budgetOf('none', { minAvailable: 1 });
    const budgets = await readBudgets(dependencies);
    expect(budgets.map(({ disruptedPods }) => [...disruptedPods])).toEqual([['gone'], []]);
  });

  it('are read on all pages, of 500 objects, and an endless list is a fault', async () => {
    const asked: unknown[] = [];
    const listing = (pages: number) => ({
      objects: {
        ...dependencies.objects,
        async list({ resource, limit, continueAfter }: Parameters<WorkDependencies['objects']['list']>[0]) {
          if (resource !== 'poddisruptionbudgets') return { objects: [] };
          asked.push([limit, continueAfter]);
          const page = asked.length;
          return {
            objects: [{ metadata: { namespace: 'd', name: `b${page}` }, spec: {} }],
            ...(page < pages && { next: `p${page}` }),
          };
        },
      } as unknown as WorkDependencies['objects'],
    });
    expect(await readBudgets(listing(3))).toHaveLength(3);
    expect(asked).toEqual([
      [500, undefined],
      [500, 'p1'],
      [500, 'p2'],
    ]);
    asked.length = 0;
    expect(await readBudgets(listing(200))).toHaveLength(200);
    asked.length = 0;
    await expect(readBudgets(listing(201))).rejects.toThrow(RangeError);
  });
});

describe('the victims of a preemption', () => {
  const deleteFor = async (nominated: KubePod, victims: readonly KubePod[]) => {
    const chosen = { nodeName: 'n', victims: victims.map(schedulablePod), violations: 0 };
    return deleteVictims(dependencies, schedulablePod(nominated), { chosen, nominated, nowMs: NOW_MS });
  };
  const isDeleted = async (name: string) => (await pod(name))?.metadata.deletionTimestamp !== undefined;

  it('are deleted with condition, event and record', async () => {
    const preemptor = await createPod('p');
    const victims = [await createPod('v0'), await createPod('v1')];
    expect(await deleteFor(preemptor, victims)).toBe(2);
    expect((await pod('v0'))?.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }),
    );
    expect([await isDeleted('v0'), await isDeleted('v1'), await isDeleted('p')]).toEqual([true, true, false]);
    const events = (await dependencies.objects.list({ resource: 'events' })).objects as readonly Record<
      string,
      unknown
    >[];
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({
      type: 'Normal',
      reason: 'Preempted',
      action: 'Preempting',
      message: 'Preempted by pod uid-p on node n',
    });
    expect(JSON.stringify(events[0])).toContain('default-scheduler');
    const { decisions } = await decisionStore(items).list({ nowMs: NOW_MS, limit: 10 });
    expect(decisions).toHaveLength(2);
    expect(metrics).toEqual([['scheduler_preemption_victims', 2]]);
  });

  it('are left out if they terminate, were replaced or no longer exist', async () => {
    const preemptor = await createPod('p');
    const terminating = await createPod('v0', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const replaced = await createPod('v1');
    const gone = { ...(await createPod('v2')), metadata: { namespace: 'd', name: 'absent', uid: 'absent' } };
    const victims = [terminating, { ...replaced, metadata: { ...replaced.metadata, uid: 'former' } }, gone];
    expect(await deleteFor(preemptor, victims)).toBe(0);
    expect([await isDeleted('v1'), await isDeleted('v2')]).toEqual([false, false]);
    expect(metrics).toEqual([]);
  });

  it('stay when the pod was changed after its nomination', async () => {
    const preemptor = await createPod('p');
    const victim = await createPod('v0');
    const ref = { resource: 'pods', namespace: 'd', name: 'p' };
    const object = { ...preemptor, status: { phase: 'Pending' } } as KubePod;
    await dependencies.objects.commit({ writes: [{ kind: 'update', ref, object, previous: preemptor }] });
    expect(await deleteFor(preemptor, [victim])).toBe(0);
    expect(await isDeleted('v0')).toBe(false);
  });
});

it('a lower nomination is cleared, unless the pod changed meanwhile', async () => {
  const status = { phase: 'Pending', nominatedNodeName: 'n' } as const;
  const [one, other] = [await createPod('one', { status }), await createPod('other', { status })];
  const ref = { resource: 'pods', namespace: 'd', name: 'one' };
  const changed = { ...one, metadata: { ...one.metadata, labels: { changed: 'yes' } } };
  await dependencies.objects.commit({ writes: [{ kind: 'update', ref, object: changed, previous: one }] });
  await clearNominations(dependencies, [one, other]);
  expect((await pod('one'))?.status).toEqual(status);
  expect((await pod('other'))?.status).toEqual({ phase: 'Pending' });
});
