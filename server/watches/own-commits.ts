/** A store that reports what this process commits to the change log, as soon as it is committed. */
import type { ItemStore, TransactWrite } from '../../shared/store/item-store.ts';
import { loggedResource } from '../../shared/store/layout.ts';

export function reportingCommits(items: ItemStore, onChanged: (resource: string) => void): ItemStore {
  const report = (writes: readonly TransactWrite[]): void => {
    const resources = writes.flatMap(({ key }) => (key.table === 'objects' ? (loggedResource(key.pk) ?? []) : []));
    for (const resource of new Set(resources)) onChanged(resource);
  };
  return {
    ...items,
    async write(write, options) {
      const outcome = await items.write(write, options);
      if (outcome.kind === 'written') report([write]);
      return outcome;
    },
    async transact(writes) {
      const outcome = await items.transact(writes);
      if (outcome.kind === 'written') report(writes);
      return outcome;
    },
  };
}
