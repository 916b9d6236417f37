import { expect, it } from 'vitest';
import { paramDescriptor } from '../../shared/admission/params.ts';
import { composeStorages } from '../../shared/api/request-dependencies.ts';
import { systemClock, systemRandom } from '../../shared/clock.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import type { ItemKey, ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { REMOVED_KINDS, workloadsManifest } from './manifest.ts';

/** In tables of their own. */
const NOT_OBJECTS = ['BootstrapToken', 'NodeIdentity'];

it('the removal of an object of every kind starts the function, except of Events', () => {
  const kinds = resources.filter((each) => each.servedFrom === undefined && each.verbs.includes('delete'));
  const names = kinds.map(({ kind }) => kind).filter((kind) => kind !== 'Event' && !NOT_OBJECTS.includes(kind));
  expect(REMOVED_KINDS).toEqual(names.sort());
});

it('the function may read every kind of object that can parameterize a policy', async () => {
  const granted = Object.keys(workloadsManifest.tables.control);
  const isGranted = ({ table, pk }: Pick<ItemKey, 'table' | 'pk'>): boolean =>
    table === 'objects' ||
    (table === 'control' &&
      granted.some((name) => (name.endsWith('*') ? pk.startsWith(name.slice(0, -1)) : name === pk)));
  const refused = new Set<string>();
  let reading = '';
  const note = (key: Pick<ItemKey, 'table' | 'pk'>): void => {
    if (!isGranted(key)) refused.add(`${reading} reads ${key.table} ${key.pk}`);
  };
  const memory = memoryItemStore();
  const items: ItemStore = {
    ...memory,
    get(key, options) {
      note(key);
      return memory.get(key, options);
    },
    getMany(keys, options) {
      for (const key of keys) note(key);
      return memory.getMany(keys, options);
    },
    query(request) {
      note(request);
      return memory.query(request);
    },
    scan(request) {
      note({ table: request.table, pk: '(all)' });
      return memory.scan(request);
    },
    write: (write, options) => memory.write(write, options),
    transact: (writes) => memory.transact(writes),
  };
  const changes = changeLog({ items, clock: systemClock, shardsOf });
  const parts = { items, changes, clock: systemClock, random: systemRandom, policy: defaultPolicy };
  const { storageOf } = composeStorages({ ...parts, pause: async () => {}, makesInitialObjects: false });
  let kinds = 0;
  for (const { group, version, kind } of resources) {
    const apiVersion = group === '' ? version : `${group}/${version}`;
    const descriptor = await paramDescriptor({ customs: { findKind: async () => undefined } }, { apiVersion, kind });
    if (descriptor === undefined || !descriptor.verbs.includes('list')) continue;
    kinds += 1;
    reading = kind;
    const namespace = descriptor.namespaced ? 'default' : '';
    await storageOf(descriptor).get(namespace, 'a');
    await storageOf(descriptor).list({ namespace, limit: 500 });
  }
  expect([...refused]).toEqual([]);
  expect(kinds).toBeGreaterThan(30);
});
