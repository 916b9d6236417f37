/** What the service refuses before it looks at an item; every store refuses it alike. */
import {
  type ItemKey,
  SCAN_SEGMENTS_MAX,
  type ScanRequest,
  StoreFault,
  TRANSACT_WRITES_MAX,
  type TransactWrite,
} from './item-store.ts';

/** Two keys have the same text only when they are the same. */
export const keyText = ({ table, pk, sk }: ItemKey): string => `${table}\n${pk}\n${sk}`;

/** @throws StoreFault `rejected` */
export function checkSegment({ segment, segments }: ScanRequest): void {
  if (segments > SCAN_SEGMENTS_MAX || segment < 0 || segment >= segments) {
    const last = SCAN_SEGMENTS_MAX - 1;
    throw new StoreFault('rejected', `a scan takes segment 0 to ${last} of 1 to ${SCAN_SEGMENTS_MAX}`, {
      retryable: false,
    });
  }
}

/** @throws StoreFault `rejected` */
export function checkTransaction(writes: readonly TransactWrite[]): void {
  const keys = new Set(writes.map(({ key }) => keyText(key)));
  if (writes.length < 1 || writes.length > TRANSACT_WRITES_MAX || keys.size !== writes.length) {
    throw new StoreFault('rejected', `a transaction takes 1 to ${TRANSACT_WRITES_MAX} writes on distinct items`, {
      retryable: false,
    });
  }
}
