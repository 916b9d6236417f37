/** Limits of DynamoDB requests that do not depend on items. Every store enforces them. */
import {
  type ItemKey,
  SCAN_SEGMENTS_MAX,
  type ScanRequest,
  StoreFault,
  TRANSACT_WRITES_MAX,
  type TransactWrite,
} from './item-store.ts';

/** A text that identifies a key, whatever characters the key has. */
export const keyText = ({ table, pk, sk }: ItemKey): string => `${table} ${pk.length} ${pk} ${sk}`;

/** @throws StoreFault `rejected` */
export function checkSegment({ segment, segments }: ScanRequest): void {
  if (segments > SCAN_SEGMENTS_MAX || segment < 0 || segment >= segments) {
    const last = SCAN_SEGMENTS_MAX - 1;
    throw new StoreFault('rejected', `a scan accepts segment 0 to ${last} of 1 to ${SCAN_SEGMENTS_MAX}`, {
      retryable: false,
    });
  }
}

/** @throws StoreFault `rejected` */
export function checkTransaction(writes: readonly TransactWrite[]): void {
  const keys = new Set(writes.map(({ key }) => keyText(key)));
  if (writes.length < 1 || writes.length > TRANSACT_WRITES_MAX || keys.size !== writes.length) {
    throw new StoreFault('rejected', `a transaction accepts 1 to ${TRANSACT_WRITES_MAX} writes on distinct items`, {
      retryable: false,
    });
  }
}
