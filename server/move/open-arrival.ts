/** The first start of a store that a cluster was moved into. */
import { forgetLastTick } from '../../shared/fleet/fleet-store.ts';
import { StartError } from '../../shared/host/start-error.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { ARRIVAL_KEY, arrivalOf, type Fence } from '../../shared/store/move-rows.ts';

/** Opens it, once. @throws StartError if it is not complete, or was abandoned */
export async function openArrival(
  { items, fence }: { readonly items: ItemStore; fence(): Fence | undefined },
  file: string,
): Promise<void> {
  // It was opened before it was moved on.
  if (fence() !== undefined) return;
  const arrival = arrivalOf(await items.get(ARRIVAL_KEY, { consistent: true }));
  if (arrival === undefined || arrival.phase === 'open') return;
  if (arrival.phase === 'copying') {
    throw new StartError(`${file} is not complete: run nodekeeper move again, with the arguments of before`);
  }
  if (arrival.phase === 'abandoned') throw new StartError(`the move to ${file} was abandoned: it is no cluster`);
  const grace = forgetLastTick();
  const hasTicked = (await items.get(grace.key, { consistent: true })) !== undefined;
  const outcome = await items.transact([
    {
      kind: 'update',
      key: ARRIVAL_KEY,
      set: { phase: 'open' },
      when: { kind: 'compare', attribute: 'phase', op: '=', value: 'ready' },
    },
    ...(hasTicked ? [grace] : []),
  ]);
  if (outcome.kind === 'written') return;
  // Another command may have opened it.
  const now = arrivalOf(await items.get(ARRIVAL_KEY, { consistent: true }));
  if (now?.phase !== 'open') throw new StartError(`the move to ${file} was abandoned meanwhile`);
}
