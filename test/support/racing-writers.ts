/** Writers that are delayed, killed before or after their commits, or get no response. */
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { type ItemStore, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import type { ObjectStore, ObjectWrite } from '../../shared/store/object-store.ts';

const NAMES = 24;

type Random = () => number;

/** Lets a random number of other turns pass. */
export async function turns(random: Random, most: number): Promise<void> {
  for (let left = Math.floor(random() * most); left > 0; left -= 1) await new Promise(setImmediate);
}

/** Holds requests up on their way out and back; loses some commits before they happen, and some answers after. */
export function unreliable(
  items: ItemStore,
  random: Random,
  options: { readonly turnsMax: number; readonly kills: number },
): ItemStore {
  const lost = (): StoreFault => new StoreFault('timeout', 'lost on purpose', { retryable: true });
  const around = async <T>(operation: () => Promise<T>): Promise<T> => {
    await turns(random, options.turnsMax);
    const answer = await operation();
    await turns(random, options.turnsMax);
    return answer;
  };
  return {
    get: (...args) => around(() => items.get(...args)),
    getMany: (...args) => around(() => items.getMany(...args)),
    query: (...args) => around(() => items.query(...args)),
    scan: (...args) => around(() => items.scan(...args)),
    write: (...args) => around(() => items.write(...args)),
    transact: (writes: readonly TransactWrite[]) =>
      around(async () => {
        // The version is chosen, the commit has not happened: the longer this lasts, the more is read meanwhile.
        if (random() < 0.2) await turns(random, options.turnsMax * 20);
        if (random() < options.kills) throw lost();
        const outcome = await items.transact(writes);
        if (random() < options.kills) throw lost();
        return outcome;
      }),
  };
}

/** What must be equal in a copy. */
export const stateOf = (object: KubeObject): string =>
  `${object.metadata.resourceVersion} ${JSON.stringify(object.spec)}`;

/** Creates, updates or deletes one to six random objects; true if it received the confirmation of the commit. */
export async function writeOnce(
  objects: ObjectStore,
  resource: string,
  { random, mark }: { readonly random: Random; readonly mark: string },
): Promise<boolean> {
  const names = new Set(
    Array.from(
      { length: random() < 0.3 ? 2 + Math.floor(random() * 5) : 1 },
      () => `n${String(Math.floor(random() * NAMES)).padStart(2, '0')}`,
    ),
  );
  const commit: ObjectWrite[] = [];
  for (const name of names) {
    const ref: ObjectRef = { resource, namespace: '', name };
    const previous = await objects.get(ref);
    const object = {
      ...previous,
      metadata: { ...previous?.metadata, name },
      spec: { mark, text: 'x'.repeat(Math.floor(random() * 1_500)) },
    };
    if (previous === undefined) commit.push({ kind: 'create', ref, object });
    else if (random() < 0.25) commit.push({ kind: 'delete', ref, previous });
    else commit.push({ kind: 'update', ref, object, previous });
  }
  return (await objects.commit({ writes: commit })).kind === 'committed';
}
