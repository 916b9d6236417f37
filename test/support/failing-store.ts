/** A process that dies: from its n-th call to the tables on every call fails. */
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';

export interface DyingStore {
  readonly items: ItemStore;
  calls(): number;
}

/** `lastHappens`: the n-th call still does its work, only its answer is lost. */
export function dyingStore(items: ItemStore, atCall: number, lastHappens: boolean): DyingStore {
  let calls = 0;
  const guarded =
    <Arguments extends unknown[], Answer>(call: (...args: Arguments) => Promise<Answer>) =>
    async (...args: Arguments): Promise<Answer> => {
      calls += 1;
      if (calls === atCall && lastHappens) await call(...args);
      if (calls >= atCall) throw new StoreFault('unreachable', 'the process is dead', { retryable: false });
      return call(...args);
    };
  return {
    calls: () => calls,
    items: {
      get: guarded(items.get.bind(items)),
      getMany: guarded(items.getMany.bind(items)),
      query: guarded(items.query.bind(items)),
      scan: guarded(items.scan.bind(items)),
      write: guarded(items.write.bind(items)),
      transact: guarded(items.transact.bind(items)),
    },
  };
}
