/**
 * The measured form of streams, and who measures it, in the partition of the slots: a watch reads that partition
 * anyway.
 *
 *   pk `watch-slots` sk `form`      paddingBytes, or none for a long poll; measuredMs, deployment
 *                    sk `probe`     id of the running measurement, untilMs
 *
 * Cost of a measurement: 2 write units, and a read of the partition for each of its streams.
 */

import type { Item, ItemStore } from '../store/item-store.ts';
import type { MeasuredForm } from './stream-form.ts';

export const SLOTS_PARTITION = 'watch-slots';
const keyOf = (sk: 'form' | 'probe') => ({ table: 'control', pk: SLOTS_PARTITION, sk }) as const;

/** Between two measurements, whatever became of the first one. Milliseconds. */
const CLAIM_MS = 600_000;

/** @returns whether this process measures. `id` opens the streams of the measurement. */
export async function claimMeasurement(
  items: Pick<ItemStore, 'write'>,
  { id, nowMs }: { readonly id: string; readonly nowMs: number },
): Promise<boolean> {
  const outcome = await items.write({
    kind: 'put',
    key: keyOf('probe'),
    item: { id, untilMs: nowMs + CLAIM_MS },
    when: {
      kind: 'any',
      of: [{ kind: 'itemAbsent' }, { kind: 'compare', attribute: 'untilMs', op: '<=', value: nowMs }],
    },
  });
  return outcome.kind === 'written';
}

/** Whether the running measurement has this id. */
export async function isMeasurement(
  items: Pick<ItemStore, 'query'>,
  { id, nowMs }: { readonly id: string; readonly nowMs: number },
): Promise<boolean> {
  const { items: found } = await items.query({
    table: 'control',
    pk: SLOTS_PARTITION,
    consistent: true,
    after: 'form',
  });
  return found.some((item) => item['sk'] === 'probe' && item['id'] === id && Number(item['untilMs']) > nowMs);
}

export async function keepForm(
  items: Pick<ItemStore, 'write'>,
  { form, measuredMs, deployment }: MeasuredForm,
): Promise<void> {
  const padding = form.kind === 'stream' ? { paddingBytes: form.paddingBytes } : {};
  await items.write({ kind: 'put', key: keyOf('form'), item: { ...padding, measuredMs, deployment } });
}

export const readForm = async (items: Pick<ItemStore, 'get'>): Promise<MeasuredForm | undefined> =>
  formOf((await items.get(keyOf('form'), { consistent: false })) ?? {});

/** From a row of the partition. undefined: it is another one. */
export function formOf({ paddingBytes, measuredMs, deployment }: Item): MeasuredForm | undefined {
  if (typeof measuredMs !== 'number' || typeof deployment !== 'string') return undefined;
  const form =
    typeof paddingBytes === 'number' ? { kind: 'stream' as const, paddingBytes } : { kind: 'longPoll' as const };
  return { form, measuredMs, deployment };
}
