/**
 * Counted silences in the `control` table, one item per hour, zone, profile and process (shared/fleet/silences).
 *
 *   pk `silences` sk <start of the hour, ms, 13 digits>-<hash of zone and profile>-<slot>
 *                 hour JSON, ttl epoch seconds
 *
 * The key follows from the content, so a write that is sent twice stores one item. Cost: one write unit per hour, zone
 * and profile; a month of three zones reads some 150 units.
 */
import { defined } from '../../defined.ts';
import type { Item, ItemKey, ItemStore, PutWrite } from '../../store/item-store.ts';
import { shortHash } from '../../text.ts';
import type { SilenceHour } from './silence-hour.ts';

const PARTITION = 'silences';
/** Retention. Seconds. */
const SILENCE_SECONDS = 30 * 86_400;
const TIME_DIGITS = 13;

/** Unique, and a valid name of a Kubernetes object. */
export const silenceHourName = ({ hourStartMs, zone, profile, slot }: SilenceHour): string =>
  `${String(hourStartMs).padStart(TIME_DIGITS, '0')}-${shortHash(JSON.stringify([zone, profile]))}-${slot}`;

const keyOf = (name: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: name });

export const silenceHourWrite = (hour: SilenceHour): PutWrite => ({
  kind: 'put',
  key: keyOf(silenceHourName(hour)),
  item: { hour: JSON.stringify(hour), ttl: Math.ceil(hour.hourStartMs / 1_000) + SILENCE_SECONDS },
});

export interface SilenceHourPage {
  readonly hours: readonly SilenceHour[];
  /** Name of the last item read, when more may follow. */
  readonly next?: string;
}

export interface SilenceStore {
  get(name: string): Promise<SilenceHour | undefined>;
  /** In the order of their names: by time. Items that have expired are left out. */
  list(request: { readonly nowMs: number; readonly limit: number; readonly after?: string }): Promise<SilenceHourPage>;
}

export const silenceStore = (items: Pick<ItemStore, 'get' | 'query'>): SilenceStore => ({
  async get(name) {
    const item = await items.get(keyOf(name), { consistent: false });
    return item === undefined ? undefined : hourOf(item);
  },
  async list({ nowMs, limit, after }) {
    const page = await items.query({
      table: 'control',
      pk: PARTITION,
      consistent: false,
      limit,
      ...defined({ after }),
    });
    const live = page.items.filter(({ ttl }) => Number(ttl) * 1_000 > nowMs);
    return { hours: live.map(hourOf), ...defined({ next: page.next }) };
  },
});

const hourOf = (item: Item): SilenceHour => JSON.parse(item['hour'] as string) as SilenceHour;
