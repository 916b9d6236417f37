import { expect, it } from 'vitest';
import { clusterObjects, selectableFieldsOf, shardsOf } from '../../../shared/kinds/resources.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { changeLog } from '../../../shared/store/change-log.ts';
import type { ItemStore, TransactWrite } from '../../../shared/store/item-store.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { issuedItems } from '../../../shared/store/object-store.ts';
import { changeOf } from '../../../shared/store/writes/store-change.ts';
import { type ShownStatuses, shownStatuses } from './shown-statuses.ts';

const POD = { resource: 'pods', namespace: 'default', name: 'p' };

/** A copy with one pod. The clock of those who write it stands still: each version is the next one. */
async function copyOfOnePod() {
  const clock = { nowMs: () => Date.UTC(2026, 0, 1) };
  const random = { uuid: () => 'u', fraction: () => 0.5 };
  const tables = memoryItemStore();
  let statuses: ShownStatuses | undefined;
  const items: ItemStore = {
    ...tables,
    async transact(writes) {
      const outcome = await tables.transact(writes);
      const added = ({ key, ...write }: TransactWrite) =>
        write.kind === 'put' ? (changeOf(key, undefined, write.item, 'write') ?? []) : [];
      statuses?.onCommit(writes.flatMap(added));
      return outcome;
    },
  };
  const changed: string[] = [];
  statuses = shownStatuses({ items, clock, onChanged: (resource) => changed.push(resource) });
  const cluster = clusterObjects({ items, clock, random });
  const shown = clusterObjects({ items: statuses.items, clock, random });
  const log = changeLog({ items: statuses.items, clock, shardsOf });
  const object: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'default', uid: 'u' } };
  await cluster.commit({ writes: [{ kind: 'create', ref: POD, object: withPhase(object, 'Running') }] });
  return {
    ...{ statuses, changed, cluster, log },
    read: async () => (await shown.get(POD))!,
    listed: async () => (await shown.list({ resource: 'pods' })).objects,
    async report(phase: string) {
      const stored = (await shown.get(POD))!;
      await statuses.show(POD, withPhase(stored, phase), stored);
    },
    /** The copy receives a change of the cluster. */
    async receive(phase: string, version: number) {
      const previous = (await cluster.get(POD))!;
      const write = { kind: 'update', ref: POD, object: withPhase(previous, phase), previous, version } as const;
      await items.transact(issuedItems({ clock, shardsOf, selectableFields: selectableFieldsOf }, [write], LOGGED));
    },
    /** Phases of the changes after a version, and up to where they are all. */
    async changesAfter(after: number) {
      const outcome = await log.readChanges({ resource: 'pods', after, limit: 100, eager: true });
      if (outcome.kind === 'expired') return outcome.kind;
      for (const { object: each, resourceVersion } of outcome.changes) {
        expect(each.metadata.resourceVersion).toBe(String(resourceVersion));
      }
      return { phases: outcome.changes.map(({ object: each }) => each.status!['phase']), through: outcome.through };
    },
  };
}

const LOGGED = { logged: true } as const;

const withPhase = (object: KubeObject, phase: string): KubeObject => ({ ...object, status: { phase } });

it('shows a status in reads and in the log, with rising versions, and keeps nothing in the copy', async () => {
  const copy = await copyOfOnePod();
  const before = await copy.log.currentVersion('pods');
  await copy.report('Failed');
  await copy.report('Pending');
  expect(copy.changed).toEqual(['pods', 'pods']);
  const read = await copy.read();
  expect(read.status).toEqual({ phase: 'Pending' });
  expect(await copy.listed()).toEqual([read]);
  expect(await copy.log.currentVersion('pods')).toBe(Number(read.metadata.resourceVersion));
  expect(await copy.changesAfter(before)).toEqual({ phases: ['Failed', 'Pending'], through: before + 2 });
  expect(await copy.changesAfter(before + 1)).toEqual({ phases: ['Pending'], through: before + 2 });
  expect(await copy.changesAfter(before + 2)).toEqual({ phases: [], through: before + 2 });
  expect(copy.statuses.count()).toBe(1);
  expect((await copy.cluster.get(POD))!.status).toEqual({ phase: 'Running' });
});

it('is replaced by a later version of the cluster, and a watch that may miss that change lists again', async () => {
  const copy = await copyOfOnePod();
  const before = await copy.log.currentVersion('pods');
  await copy.report('Failed');
  await copy.report('Pending');
  // The clock of the cluster is behind: the version of this change is one of those that were issued here.
  await copy.receive('Succeeded', before + 1);
  expect((await copy.read()).status).toEqual({ phase: 'Succeeded' });
  expect(await copy.changesAfter(before + 1)).toBe('expired');
  expect(await copy.changesAfter(before + 2)).toBe('expired');
  const now = await copy.log.currentVersion('pods');
  expect(await copy.changesAfter(now)).toEqual({ phases: [], through: now });
  await copy.report('Failed');
  expect(await copy.changesAfter(now)).toMatchObject({ phases: ['Failed'] });
  expect((await copy.read()).status).toEqual({ phase: 'Failed' });
});

it('is withdrawn as one more change when the cluster was read three times and has no other version', async () => {
  const copy = await copyOfOnePod();
  await copy.report('Failed');
  const shown = await copy.log.currentVersion('pods');
  await copy.statuses.onRead();
  await copy.statuses.onRead();
  expect((await copy.read()).status).toEqual({ phase: 'Failed' });
  await copy.statuses.onRead();
  expect((await copy.read()).status).toEqual({ phase: 'Running' });
  expect(copy.statuses.count()).toBe(0);
  expect(await copy.changesAfter(shown)).toMatchObject({ phases: ['Running'] });
});

it('forgets the oldest changes of many, and says so to a watch from before them', async () => {
  const copy = await copyOfOnePod();
  const before = await copy.log.currentVersion('pods');
  for (let index = 0; index < 2_002; index += 1) await copy.report(`phase-${index}`);
  expect(await copy.changesAfter(before)).toBe('expired');
  expect(await copy.changesAfter(before + 2_001)).toMatchObject({ phases: ['phase-2001'] });
});
