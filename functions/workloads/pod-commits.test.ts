import { describe, expect, it } from 'vitest';
import type { AdmitObjects, Creation, MadeObject } from '../../shared/admission/created-object.ts';
import type { DecisionDraft } from '../../shared/decisions/decision-record.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ObjectWrite, objectKey } from '../../shared/store/object-store.ts';
import { readFence } from '../../shared/store/owners.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { workloadDependencies } from './dependencies.ts';
import { changeOwners, commitFirst, createPods, deletePods, type PodOwner, slowStartBatches } from './pod-commits.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const OWNER: KubeObject = { metadata: { namespace: 'd', name: 'web', uid: 'ou', resourceVersion: '7', generation: 2 } };
const owner = (fence = 0): PodOwner => ({
  kind: 'ReplicaSet',
  ref: { resource: 'replicasets', namespace: 'd', name: 'web' },
  object: OWNER,
  fence,
  nowMs: NOW_MS,
  component: 'replicaset-controller',
});
const draft = (names: readonly string[], before: number): DecisionDraft =>
  ({
    act: 'PodsCreated',
    about: { kind: 'ReplicaSet', namespace: 'd', name: 'web' },
    atMs: NOW_MS,
    reason: `${names.length} after ${before}`,
    rule: 'fact',
    inputs: {},
    outcome: {},
  }) as unknown as DecisionDraft;
const pod = (name: string, metadata: object = {}): KubePod =>
  ({ metadata: { namespace: 'd', name, uid: `u-${name}`, ...metadata } }) as KubePod;
/** It needs no defaults. */
const madePod = (made: KubeObject): MadeObject => ({ kind: 'made', object: made, given: made, complete: madePod });
const isPod = ({ ref }: ObjectWrite) => ref.resource === 'pods';

function scripted(outcomes: readonly ScriptedOutcome[]) {
  const { objects, commits } = scriptedCommits(outcomes);
  const counted: [string, number][] = [];
  const items = memoryItemStore();
  const silent = () => {};
  const common = workDependencies({
    items,
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'e', fraction: () => 0 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: (name, value) => counted.push([name, value]) },
  });
  /** Names of the pods of each commit that writes some. */
  const batches = () =>
    commits.flatMap(({ writes }) => {
      const names = writes.filter(isPod).map(({ ref }) => ref.name);
      return names.length === 0 ? [] : [names];
    });
  const reasons = () =>
    commits.flatMap(({ extra = [] }) =>
      extra.flatMap((write) =>
        write.kind === 'put' ? [String(JSON.stringify(write.item)).match(/\d+ after \d+/)?.[0]] : [],
      ),
    );
  const events = () =>
    commits.flatMap(({ writes }) =>
      writes.flatMap((write) =>
        write.ref.resource === 'events' && write.kind === 'create'
          ? [write.object as KubeObject & { reason: string; message: string }]
          : [],
      ),
    );
  const fences = () =>
    commits.flatMap(({ extra = [] }) => extra.flatMap((write) => (write.kind === 'update' ? [write.set?.['f']] : [])));
  return {
    dependencies: workloadDependencies({ ...common, objects }, {}),
    commits,
    batches,
    reasons,
    events,
    fences,
    counted,
    items,
  };
}
/** As many commits as needed, of pods and of their events. */
const ALL = Array.from({ length: 40 }, (): ScriptedOutcome => 'committed');

describe('the creation of pods', () => {
  const plan = (
    count: number,
    more: Partial<Parameters<typeof createPods>[2]> = {},
  ): Parameters<typeof createPods>[2] => ({
    count,
    nameOf: (index, { fence, position }) => `p${index}-${fence}-${position}`,
    make: (_index, name) => madePod(pod(name)),
    draft,
    ...more,
  });

  it('is in batches that double up to sixteen, each with its record and the next claim', async () => {
    const { dependencies, batches, reasons, fences, counted, events } = scripted(ALL);
    expect(await createPods(dependencies, owner(5), plan(40))).toEqual({ kind: 'applied', fence: 11, count: 40 });
    expect(batches().map(({ length }) => length)).toEqual([1, 2, 4, 8, 16, 9]);
    expect(
      new Set(
        batches()
          .flat()
          .map((name) => name.split('-')[0]),
      ).size,
    ).toBe(40);
    expect(reasons()).toEqual(['1 after 0', '2 after 1', '4 after 3', '8 after 7', '16 after 15', '9 after 31']);
    expect(fences()).toEqual([6, 7, 8, 9, 10, 11]);
    expect(counted.reduce((sum, [, value]) => sum + value, 0)).toBe(40);
    expect(events()[0]).toMatchObject({
      reason: 'SuccessfulCreate',
      message: expect.stringContaining('Created pod: p0-'),
    });
  });

  it('is nothing without a pod to create', async () => {
    const { dependencies, commits } = scripted([]);
    expect(await createPods(dependencies, owner(5), plan(0))).toEqual({ kind: 'applied', fence: 5, count: 0 });
    expect(commits).toEqual([]);
  });

  it('uses other names under another claim, and no name twice in a batch', async () => {
    const { dependencies, batches } = scripted(ALL);
    await createPods(dependencies, owner(), plan(7));
    const positions = batches().map((names) => names.map((name) => name.split('-')[2]));
    for (const batch of positions) expect(new Set(batch).size).toBe(batch.length);
  });

  it('continues with halves of a batch that does not fit a transaction', async () => {
    const { dependencies, batches } = scripted(['committed', 'committed', { kind: 'overfull' }, ...ALL]);
    expect(await createPods(dependencies, owner(), plan(3))).toMatchObject({ kind: 'applied', count: 3 });
    expect(batches().map(({ length }) => length)).toEqual([1, 2, 1, 1]);
  });

  it.each<ScriptedOutcome>([{ kind: 'tooLarge', index: 0 }, { kind: 'overfull' }])(
    'fails for a pod that does not fit: %j',
    async (ended) => {
      const { dependencies, events } = scripted([ended, 'committed']);
      expect(await createPods(dependencies, owner(5), plan(3))).toEqual({
        kind: 'applied',
        fence: 5,
        count: 0,
        failure: { reason: 'FailedCreate', message: 'the pod template is too large' },
        retryAtMs: NOW_MS + 60_000,
      });
      expect(events().map(({ reason, message }) => [reason, message])).toEqual([
        ['FailedCreate', 'Error creating: the pod template is too large'],
      ]);
    },
  );

  it('ends at the first pod that the API would refuse, after those before it', async () => {
    const make = (index: number, name: string) =>
      index === 2 ? ({ kind: 'refused', message: 'no' } as const) : madePod(pod(name));
    const { dependencies, batches, events } = scripted(ALL);
    const failedText = (index: number, message: string) => `pod ${index}: ${message}`;
    expect(await createPods(dependencies, owner(), plan(7, { make, failedText }))).toEqual({
      kind: 'applied',
      fence: 1,
      count: 1,
      failure: { reason: 'FailedCreate', message: 'no' },
      retryAtMs: NOW_MS + 60_000,
    });
    expect([batches().length, events().at(-1)?.message]).toEqual([1, 'pod 2: no']);
  });

  describe('with admission', () => {
    const withAdmission = (admitObjects: AdmitObjects, outcomes = ALL) => {
      const { dependencies, ...scene } = scripted(outcomes);
      return { dependencies: { ...dependencies, admitObjects }, ...scene };
    };
    const decided = (objects: readonly Creation[]) => ({ kind: 'decided', objects }) as const;

    it('stores what admission made of the pods', async () => {
      const { dependencies, commits } = withAdmission(async (_owner, _of, pods) =>
        decided(pods.map((each) => madePod({ ...each.object, spec: { hostname: 'admitted' } }))),
      );
      expect(await createPods(dependencies, owner(), plan(3))).toMatchObject({ count: 3 });
      const written = commits.flatMap(({ writes }) => writes.filter(isPod));
      expect(written.map((write) => 'object' in write && write.object.spec)).toEqual(
        Array.from({ length: 3 }, () => ({ hostname: 'admitted' })),
      );
    });

    it('ends at the first pod that is refused, after those before it, and tries again when admission says', async () => {
      const refused = { kind: 'refused', message: 'denied', retryMs: 5_000 } as const;
      const { dependencies, batches, events } = withAdmission(async (_owner, _of, pods) =>
        decided(pods.map((each) => (each.object.metadata.name?.startsWith('p4') ? refused : each))),
      );
      expect(await createPods(dependencies, owner(), plan(7))).toMatchObject({
        count: 4,
        failure: { reason: 'FailedCreate', message: 'denied' },
        retryAtMs: NOW_MS + 5_000,
      });
      expect(batches().map(({ length }) => length)).toEqual([1, 2, 1]);
      expect(events().at(-1)?.message).toBe('Error creating: denied');
    });

    it('writes nothing while there is no answer, and keeps the failure of the last attempt', async () => {
      const waiting = { kind: 'waiting', retryMs: 1_000, failure: 'denied' } as const;
      const { dependencies, commits } = withAdmission(async () => waiting);
      expect(await createPods(dependencies, owner(5), plan(3))).toEqual({
        kind: 'applied',
        fence: 5,
        count: 0,
        retryAtMs: NOW_MS + 1_000,
        failure: { reason: 'FailedCreate', message: 'denied' },
      });
      expect(commits).toEqual([]);
    });
  });

  it('ends without a failure in a namespace that is being deleted', async () => {
    const { dependencies, commits } = scripted([]);
    const make = () => ({ kind: 'namespaceTerminating' }) as const;
    expect(await createPods(dependencies, owner(), plan(2, { make }))).toEqual({ kind: 'applied', fence: 0, count: 0 });
    expect(commits).toEqual([]);
  });

  it.each<ScriptedOutcome>([{ kind: 'contended' }, { kind: 'extraRefused', index: 0 }, { kind: 'conflict', index: 0 }])(
    'is overtaken by %j',
    async (lost) => {
      const { dependencies, batches } = scripted([lost, ...ALL]);
      expect(await createPods(dependencies, owner(), plan(7))).toBe('overtaken');
      expect(batches()).toHaveLength(1);
    },
  );

  it('raises the claim when a name is in use: the next attempt has other names', async () => {
    const taken: ScriptedOutcome = { kind: 'conflict', index: 0, current: pod('other') };
    const { dependencies, items } = scripted([taken]);
    await items.write({ kind: 'put', key: objectKey(owner().ref, shardsOf('replicasets')), item: { rv: 7 } });
    expect(await createPods(dependencies, owner(), plan(1))).toBe('overtaken');
    expect(await readFence(items, 'ou')).toBe(1);
  });

  it('fails for a name that an object of another owner has, where names are fixed', async () => {
    const nameOf = (index: number) => `web-${index}`;
    const takenText = (name: string) => `${name} exists`;
    const current = pod('web-0', { ownerReferences: [{ uid: 'other', controller: true }] });
    const other = scripted([{ kind: 'conflict', index: 0, current }, ...ALL]);
    expect(await createPods(other.dependencies, owner(), plan(1, { nameOf, takenText }))).toMatchObject({
      failure: { message: 'web-0 exists' },
      count: 0,
    });
    const ours = pod('web-0', { ownerReferences: [{ uid: 'ou', controller: true }] });
    const again = scripted([{ kind: 'conflict', index: 0, current: ours }, ...ALL]);
    expect(await createPods(again.dependencies, owner(), plan(1, { nameOf, takenText }))).toBe('overtaken');
  });
});

describe('the deletion of pods', () => {
  const pods = (count: number) => Array.from({ length: count }, (_, index) => pod(`p${index}`));

  it('is in parts of sixteen, each with its record and the next claim', async () => {
    const { dependencies, batches, reasons, fences, counted } = scripted(ALL);
    expect(await deletePods(dependencies, owner(5), { pods: pods(20), draft })).toEqual({ kind: 'applied', fence: 7 });
    expect(batches().map(({ length }) => length)).toEqual([16, 4]);
    expect([reasons(), fences()]).toEqual([
      ['16 after 0', '4 after 16'],
      [6, 7],
    ]);
    expect(counted.map(([, value]) => value)).toEqual([16, 4]);
  });

  it('stores what the owner keeps with its claim', async () => {
    const { dependencies, commits } = scripted(ALL);
    await deletePods(dependencies, owner(), { pods: pods(1), draft, more: { b: 9 } });
    expect(commits[0]?.extra).toContainEqual(expect.objectContaining({ set: { b: 9, f: 1 } }));
  });

  it('is in smaller parts when they do not fit a transaction', async () => {
    const { dependencies, batches } = scripted([{ kind: 'overfull' }, ...ALL]);
    expect(await deletePods(dependencies, owner(), { pods: pods(5), draft })).toEqual({ kind: 'applied', fence: 3 });
    expect(batches().map(({ length }) => length)).toEqual([5, 2, 2, 1]);
    const one = scripted([{ kind: 'overfull' }]);
    expect(await deletePods(one.dependencies, owner(), { pods: pods(1), draft })).toBe('overtaken');
  });

  it('is overtaken when a part is refused, and nothing without pods', async () => {
    const { dependencies } = scripted([{ kind: 'extraRefused', index: 0 }]);
    expect(await deletePods(dependencies, owner(), { pods: pods(3), draft })).toBe('overtaken');
    const none = scripted([]);
    expect(await deletePods(none.dependencies, owner(4), { pods: [], draft })).toEqual({ kind: 'applied', fence: 4 });
  });
});

describe('changes of owners', () => {
  it('add and remove the reference of the controller alone', async () => {
    const foreign = { apiVersion: 'v1', kind: 'Other', name: 'x', uid: 'xu' };
    const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'ou' };
    const { dependencies, commits } = scripted(ALL);
    const adopt = [{ resource: 'pods', object: pod('a', { ownerReferences: [foreign] }) }];
    const release = [{ resource: 'pods', object: pod('b', { ownerReferences: [reference, foreign] }) }];
    expect(await changeOwners(dependencies, owner(), { adopt, release })).toBe('committed');
    const owners = commits[0]?.writes.map((write) =>
      write.kind === 'update' ? write.object.metadata.ownerReferences?.map(({ uid }) => uid) : [],
    );
    expect(owners).toEqual([['xu', 'ou'], ['xu']]);
    expect(commits[0]?.extra?.map(({ kind }) => kind)).toEqual(['check', 'update']);
  });

  it('are as many as fit one transaction', async () => {
    const writes = Array.from(
      { length: 20 },
      (_, index): ObjectWrite => ({
        kind: 'create',
        ref: { resource: 'pods', namespace: 'd', name: `p${index}` },
        object: pod(`p${index}`),
      }),
    );
    const first = async (outcomes: readonly ScriptedOutcome[]) => {
      const { dependencies, batches } = scripted(outcomes);
      return [await commitFirst(dependencies, writes, []), batches().map(({ length }) => length)];
    };
    expect(await first(['committed'])).toEqual(['committed', [16]]);
    expect(await first([{ kind: 'overfull' }, { kind: 'overfull' }, 'committed'])).toEqual(['committed', [16, 8, 4]]);
    expect(await first([{ kind: 'contended' }])).toEqual(['overtaken', [16]]);
    const never = Array.from({ length: 9 }, (): ScriptedOutcome => ({ kind: 'overfull' }));
    expect(await first(never)).toEqual(['overtaken', [16, 8, 4, 2, 1]]);
  });
});

it.each([
  [0, undefined, []],
  [1, undefined, [1]],
  [10, undefined, [1, 2, 4, 3]],
  [15, undefined, [1, 2, 4, 8]],
  [12, 3, [1, 2, 3, 3, 3]],
])('WR-03 %i operations, at most %s at a time, are the batches %j', (count, batchMax, batches) => {
  expect(slowStartBatches(count, batchMax)).toEqual(batches);
});
