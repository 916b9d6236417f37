import { expect, it } from 'vitest';
import { removingNode } from '../../shared/events/event-text.ts';
import type { WatchRow } from '../../shared/fleet/instances/watch-list-store.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { PutWrite } from '../../shared/store/item-store.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { deleteNode } from './delete-node.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const RECORD: PutWrite = { kind: 'put', key: { table: 'control', pk: 'record', sk: '-' }, item: {} };
const node = (metadata: object = {}): KubeNode =>
  ({ metadata: { name: 'n', uid: 'u', resourceVersion: '7', ...metadata } }) as KubeNode;
const row = { nodeName: 'n', uid: 'u', seenText: undefined } as unknown as WatchRow;

async function run(outcomes: readonly ScriptedOutcome[], { stored = node(), isStored = true, isDeleted = true } = {}) {
  const { objects, commits, reads, written } = scriptedCommits(outcomes, () => (isStored ? stored : undefined));
  const decided: (string | undefined)[] = [];
  const outcome = await deleteNode({ objects, random: { uuid: () => 'e', fraction: () => 0 } }, row, NOW_MS, (each) => {
    decided.push(each.metadata.resourceVersion);
    return isDeleted ? { event: removingNode('n'), record: RECORD } : undefined;
  }).catch((fault: unknown) => fault);
  const keys = commits.map(({ extra = [] }) => extra.map(({ kind, key }) => `${kind} ${key.pk}`));
  return { outcome, decided, reads, written: written(), keys };
}
const EVENT = expect.stringMatching(/^create n\./);

it('a Node is deleted with its event, its row on the list and its record', async () => {
  const { outcome, written, keys } = await run(['committed']);
  expect([outcome, written]).toEqual([{ kind: 'deleted' }, [['delete n', EVENT]]]);
  expect(keys[0]).toContain('delete cloud');
  expect(keys[0]?.at(-1)).toBe('put record');
});

it('a Node with finalizers is marked once, and stays on the list', async () => {
  const held = node({ finalizers: ['f'] });
  const { outcome, written, keys } = await run(['committed'], { stored: held });
  expect([outcome, written, keys]).toEqual([{ kind: 'held' }, [['update n', EVENT]], [['put record']]]);
  const again = await run([], { stored: { ...held, metadata: { ...held.metadata, deletionTimestamp: 't' } } });
  expect([again.outcome, again.written]).toEqual([{ kind: 'held' }, []]);
  const unheld = await run(['committed'], { stored: node({ deletionTimestamp: 't' }) });
  expect(unheld.outcome).toEqual({ kind: 'deleted' });
});

it('a Node that no longer exists, was created again, or must stay is not deleted', async () => {
  expect((await run([], { isStored: false })).outcome).toEqual({ kind: 'gone' });
  expect((await run([], { stored: node({ uid: 'other' }) })).outcome).toEqual({ kind: 'gone' });
  const spared = await run([], { isDeleted: false });
  expect([spared.outcome, spared.written]).toEqual([{ kind: 'spared' }, []]);
});

it('a Node that changed is decided on again, as it is stored now', async () => {
  const current = node({ resourceVersion: '8' });
  const changed = await run([{ kind: 'conflict', index: 0, current }, 'committed']);
  expect([changed.outcome, changed.decided]).toEqual([{ kind: 'deleted' }, ['7', '8']]);
  const gone = await run([{ kind: 'conflict', index: 0 }]);
  expect(gone.outcome).toEqual({ kind: 'gone' });
});

it('an event that exists is not written again', async () => {
  const { outcome, written } = await run([{ kind: 'conflict', index: 1 }, 'committed']);
  expect([outcome, written]).toEqual([{ kind: 'deleted' }, [['delete n', EVENT], ['delete n']]]);
});

it('another answer that was stored since refuses the deletion', async () => {
  expect((await run([{ kind: 'extraRefused', index: 0 }])).outcome).toEqual({ kind: 'overtaken' });
});

it('a Node that keeps changing is read again, six times at most', async () => {
  const { outcome, written, reads } = await run([]);
  expect([written.length, reads.length]).toEqual([6, 7]);
  expect(outcome).toMatchObject({ retryable: true });
});

it.each<ScriptedOutcome>([{ kind: 'tooLarge', index: 0 }, { kind: 'overfull' }])(
  'fails for good after %j',
  async (ended) => {
    const { outcome, written } = await run([ended]);
    expect([written.length, (outcome as { retryable?: boolean }).retryable]).toEqual([1, false]);
  },
);
