import { describe, expect, it } from 'vitest';
import type { PodRemoval, RemovalStep } from '../../shared/kinds/pods/collection.rule.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { CheckWrite, PutWrite } from '../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { removePod } from './remove-pod.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const GUARD: CheckWrite = {
  kind: 'check',
  key: { table: 'objects', pk: 'guard', sk: '-' },
  when: { kind: 'itemAbsent' },
};
const RECORD: PutWrite = { kind: 'put', key: { table: 'control', pk: 'record', sk: '-' }, item: {} };
const DELETE: RemovalStep = { kind: 'delete', gracePeriodSeconds: 0 };
const DISRUPTION = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC', message: 'm' } as const;
const MARK: RemovalStep = { kind: 'markFailed', condition: DISRUPTION };
const pod = (metadata: object = {}, status: object = {}): KubePod =>
  ({
    metadata: { namespace: 'd', name: 'p', uid: 'u', ...metadata },
    status: { phase: 'Running', ...status },
  }) as KubePod;

async function remove(steps: readonly RemovalStep[], outcomes: readonly ScriptedOutcome[], stored = pod()) {
  const { objects, commits, written } = scriptedCommits(outcomes);
  const removal: PodRemoval = { namespace: 'd', name: 'p', podUid: 'u', reason: 'orphaned', steps };
  const at = { guard: [GUARD], record: RECORD, nowMs: NOW_MS };
  const outcome = await removePod(objects, stored, removal, at).catch((fault: unknown) => fault);
  const extras = commits.map(({ extra = [] }) => extra.map(({ key }) => key.pk));
  return { outcome, written: written(), extras, writes: commits.flatMap(({ writes }) => writes) };
}
const objectOf = (write: ObjectWrite | undefined) => (write?.kind === 'update' ? (write.object as KubePod) : undefined);

describe('a pod that no kubelet will finish', () => {
  it('is marked Failed, then deleted; the record is written with the last step, the guard with each', async () => {
    const { outcome, written, extras, writes } = await remove([MARK, DELETE], ['committed', 'committed']);
    expect([outcome, written]).toEqual([{ kind: 'removed' }, [['update p'], ['delete p']]]);
    expect(extras).toEqual([['guard'], ['guard', 'record']]);
    expect(objectOf(writes[0])?.status).toMatchObject({ phase: 'Failed', conditions: [DISRUPTION] });
    expect(writes[1]).toMatchObject({ previous: { status: { phase: 'Failed' } } });
  });

  it('keeps its conditions, and has none without one', async () => {
    const plain: RemovalStep = { kind: 'markFailed', condition: undefined };
    const bare = await remove([plain, DELETE], ['committed', 'committed']);
    expect(objectOf(bare.writes[0])?.status).toEqual({ phase: 'Failed' });
    const conditions = [{ type: 'Ready', status: 'False' }];
    const kept = await remove([plain, DELETE], ['committed', 'committed'], pod({}, { conditions }));
    expect(objectOf(kept.writes[0])?.status).toEqual({ phase: 'Failed', conditions });
    const same = await remove([MARK, DELETE], ['committed', 'committed'], pod({}, { conditions: [DISRUPTION] }));
    expect(objectOf(same.writes[0])?.status?.conditions).toEqual([DISRUPTION]);
  });

  it('with finalizers is marked as deleted without a grace period, once', async () => {
    const stored = pod({ finalizers: ['f'] });
    const { outcome, written, writes } = await remove([DELETE], ['committed'], stored);
    expect([outcome, written]).toEqual([{ kind: 'held' }, [['update p']]]);
    const marked = objectOf(writes[0])!;
    expect(marked.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, deletionTimestamp: '2026-01-01T00:00:00Z' });
    const again = await remove([DELETE], [], marked);
    expect([again.outcome, again.written]).toEqual([{ kind: 'held' }, []]);
  });

  it.each<ScriptedOutcome>([
    { kind: 'conflict', index: 0 },
    { kind: 'extraRefused', index: 0 },
  ])('is left to the next tick after %j', async (lost) => {
    const { outcome, written } = await remove([MARK, DELETE], [lost]);
    expect([outcome, written.length]).toEqual([{ kind: 'changed' }, 1]);
  });

  it.each<[ScriptedOutcome, boolean]>([
    [{ kind: 'contended' }, true],
    [{ kind: 'tooLarge', index: 0 }, false],
    [{ kind: 'overfull' }, false],
  ])('fails after %j, and may succeed later: %s', async (ended, retryable) => {
    const { outcome, written } = await remove([MARK, DELETE], [ended]);
    expect([(outcome as { retryable?: boolean }).retryable, written.length]).toEqual([retryable, 1]);
  });
});
