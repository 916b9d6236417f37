import { describe, expect, it } from 'vitest';
import { type ControlledFleet, settledFleet } from '../../test/support/controlled-fleet.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { podNotReady } from '../events/event-text.ts';
import type { KubePod } from '../kinds/types.ts';
import type { CheckWrite, ItemStore, PutWrite } from '../store/item-store.ts';
import { deletePod, waitsForMachine } from './delete-pod.ts';
import type { DisruptionCondition } from './eviction.rule.ts';

it('a pod that was replaced under its name before the eviction was written leaves its successor alone', async () => {
  let replace: (() => Promise<void>) | undefined;
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    async transact(writes) {
      const isEviction = writes.some(({ kind, key }) => kind === 'put' && key.sk === 'default/web');
      if (isEviction) {
        const once = replace;
        replace = undefined;
        await once?.();
      }
      return items.transact(writes);
    },
  });
  const { fleet }: { fleet: ControlledFleet } = await settledFleet({ a: 2 }, { between, policy: { tickGate: 'off' } });
  await fleet.addPod('web', 'a-0', { tolerations: [] });
  await fleet.streams();
  replace = async () => {
    await fleet.removePod('web');
    await fleet.addPod('web', 'a-1', { tolerations: [] });
  };
  const taint = { key: 'example.com/maintenance', effect: 'NoExecute' as const };
  await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [taint] } }));
  await fleet.streams();
  expect(replace).toBeUndefined();
  const successor = await fleet.pod('web');
  expect(successor?.spec?.['nodeName']).toBe('a-1');
  expect(successor?.metadata.deletionTimestamp).toBeUndefined();
  expect(successor?.status?.['conditions']).toMatchObject([{ type: 'Ready', status: 'True' }]);
});

describe('the deletion of a pod', () => {
  const NOW_MS = Date.UTC(2026, 0, 1);
  const GUARD: CheckWrite = {
    kind: 'check',
    key: { table: 'objects', pk: 'guard', sk: '-' },
    when: { kind: 'itemAbsent' },
  };
  const RECORD: PutWrite = { kind: 'put', key: { table: 'control', pk: 'record', sk: '-' }, item: {} };
  const CONDITION: DisruptionCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'm',
  };
  const pod = (parts: { metadata?: object; spec?: object; status?: object } = {}): KubePod =>
    ({
      metadata: { namespace: 'd', name: 'p', uid: 'u', ...parts.metadata },
      spec: { nodeName: 'n', terminationGracePeriodSeconds: 30, ...parts.spec },
      status: { phase: 'Running', ...parts.status },
    }) as unknown as KubePod;
  const event = {
    ...podNotReady,
    about: { kind: 'Pod', namespace: 'd', name: 'p', uid: 'u' },
  } as const;

  async function deleted(
    first: KubePod,
    outcomes: readonly ScriptedOutcome[],
    { condition }: { readonly condition: DisruptionCondition | undefined } = { condition: CONDITION },
  ) {
    const { objects, commits, reads, written } = scriptedCommits(outcomes, () => first);
    const dependencies = { objects, random: { uuid: () => 'e', fraction: () => 0 } };
    const of = { condition, event, nowMs: NOW_MS, guards: [GUARD], record: RECORD };
    const { kind } = await deletePod(dependencies, first, of);
    const extras = commits.map(({ extra = [] }) => extra.map(({ key }) => key.pk));
    const objectsOf = commits.map(({ writes }) =>
      writes[0]?.kind === 'update' ? (writes[0].object as KubePod) : undefined,
    );
    return { kind, written: written(), extras, objects: objectsOf, reads };
  }
  const EVENT = expect.stringMatching(/^create p\./);

  it('is one commit with its condition, its mark, its event and its record', async () => {
    const { kind, written, extras, objects } = await deleted(pod(), ['committed']);
    expect([kind, written, extras]).toEqual(['deleted', [['update p', EVENT]], [['guard', 'record']]]);
    expect(objects[0]).toMatchObject({
      metadata: { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 },
      status: { phase: 'Running', conditions: [CONDITION] },
    });
  });

  it('without a grace period shows its condition first', async () => {
    const quick = pod({ spec: { terminationGracePeriodSeconds: 0 } });
    const { kind, written, extras, objects } = await deleted(quick, ['committed', 'committed']);
    expect([kind, written, extras]).toEqual([
      'deleted',
      [['update p', EVENT], ['delete p']],
      [['guard'], ['guard', 'record']],
    ]);
    expect(objects[0]?.metadata.deletionTimestamp).toBeUndefined();
    const guarded = await deleted(
      pod({ spec: { terminationGracePeriodSeconds: 0 }, metadata: { finalizers: ['f'] } }),
      ['committed'],
    );
    expect([guarded.kind, guarded.written]).toEqual(['deleted', [['update p', EVENT]]]);
  });

  const TERMINATING = { deletionTimestamp: 't', deletionGracePeriodSeconds: 30 };
  it('without a condition removes a pod that waits for its machine, and no other', async () => {
    const remove = (metadata: object) => deleted(pod({ metadata }), ['committed'], { condition: undefined });
    expect(await remove(TERMINATING)).toMatchObject({
      kind: 'deleted',
      written: [['delete p', EVENT]],
      extras: [['guard', 'record']],
    });
    expect((await remove({})).kind).toBe('absent');
    expect((await remove({ ...TERMINATING, deletionGracePeriodSeconds: 0 })).kind).toBe('absent');
    expect(waitsForMachine(pod({ metadata: TERMINATING }))).toBe(true);
    expect(waitsForMachine(pod())).toBe(false);
  });

  it('is not made of a pod that terminates already, or no longer exists', async () => {
    expect(await deleted(pod({ metadata: TERMINATING }), [])).toMatchObject({ kind: 'absent', written: [] });
    expect((await deleted(pod(), [{ kind: 'conflict', index: 0 }])).kind).toBe('absent');
    const other = pod({ metadata: { uid: 'v' } });
    expect((await deleted(pod(), [{ kind: 'conflict', index: 0, current: other }])).kind).toBe('absent');
  });

  it('is decided again when the tolerations or a guarded object changed', async () => {
    const tolerating = pod({ spec: { tolerations: [{ operator: 'Exists' }] } });
    expect((await deleted(pod(), [{ kind: 'conflict', index: 0, current: tolerating }])).kind).toBe('changed');
    expect((await deleted(pod(), [{ kind: 'extraRefused', index: 0 }])).kind).toBe('changed');
  });

  it('is repeated on another version of the pod, and without an event that exists', async () => {
    const current = pod({ status: { phase: 'Pending' } });
    const changed = await deleted(pod(), [{ kind: 'conflict', index: 0, current }, 'committed']);
    expect([changed.kind, changed.objects[1]?.status?.phase]).toEqual(['deleted', 'Pending']);
    const known = await deleted(pod(), [{ kind: 'conflict', index: 1 }, 'committed']);
    expect([known.kind, known.written]).toEqual(['deleted', [['update p', EVENT], ['update p']]]);
  });

  it('ends after six lost commits, and at once if the pod is too large', async () => {
    const lost = await deleted(pod(), []);
    expect([lost.kind, lost.written.length, lost.reads.length]).toEqual(['contended', 6, 6]);
    expect((await deleted(pod(), [{ kind: 'tooLarge', index: 0 }])).kind).toBe('tooLarge');
    expect((await deleted(pod(), [{ kind: 'overfull' }])).kind).toBe('tooLarge');
  });
});
