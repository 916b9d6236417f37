/** An item store that notes each read: which partition, and whether strongly consistent. */
import type { ItemStore } from '../../shared/store/item-store.ts';

export interface RecordedReads {
  readonly items: ItemStore;
  /** The reads since the last call. */
  take(): string[];
}

export function recordedReads(items: ItemStore): RecordedReads {
  const reads: string[] = [];
  const note = (pk: string, consistent: boolean): void => {
    reads.push(`${pk} ${consistent ? 'consistent' : 'eventual'}`);
  };
  return {
    items: {
      ...items,
      get(key, options) {
        note(key.pk, options.consistent);
        return items.get(key, options);
      },
      query(request) {
        note(request.pk, request.consistent);
        return items.query(request);
      },
    },
    take: () => reads.splice(0, reads.length),
  };
}
