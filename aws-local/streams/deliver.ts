import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import { isObject } from '../assembly/template.ts';
import type { InvocationOutcome } from '../functions/local-function.ts';

/** A record of a DynamoDB stream as functions see it. */
export interface StreamRecord {
  readonly eventID: string;
  readonly eventName: string;
  readonly dynamodb: { readonly SequenceNumber: string; readonly ApproximateCreationDateTime?: number };
  readonly [field: string]: unknown;
}

export interface DeliveryPolicy {
  readonly maximumRetryAttempts: number;
  readonly maximumRecordAgeSeconds: number;
  readonly bisectBatchOnError: boolean;
  readonly reportBatchItemFailures: boolean;
}

export interface DeliveryPorts {
  invoke(records: readonly StreamRecord[]): Promise<InvocationOutcome>;
  /** These records will not be tried again. */
  discard(
    records: readonly StreamRecord[],
    reason: 'RetryAttemptsExhausted' | 'RecordAgeExceeded',
    invocations: number,
  ): void;
  /** Waits before a retry. False when the local mode is stopping. */
  pause(ms: number): Promise<boolean>;
  nowMs(): number;
}

interface Segment {
  readonly records: readonly StreamRecord[];
  /** Failed invocations of exactly this head so far. */
  readonly failures: number;
}

const PAUSES: Backoff = { firstMs: 100, limitMs: 5_000 };

/**
 * Gets a batch of stream records through a function, in order, as Lambda's event source mapping does: a failing batch
 * is retried up to `maximumRetryAttempts` times, or halved first when the mapping bisects (splitting costs no attempt);
 * a function that names failed items is invoked again from the lowest of them on. What is out of attempts or too old is
 * discarded to the failure destination, and the rest continues.
 *
 * @returns false when stopped half-way: the batch is to be delivered again from its beginning
 */
export async function deliverBatch(
  batch: readonly StreamRecord[],
  policy: DeliveryPolicy,
  ports: DeliveryPorts,
): Promise<boolean> {
  const segments: Segment[] = [{ records: batch, failures: 0 }];
  for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
    const { expired, fresh } = splitByAge(segment.records, ports.nowMs(), policy.maximumRecordAgeSeconds);
    if (expired.length > 0) ports.discard(expired, 'RecordAgeExceeded', segment.failures);
    if (fresh.length === 0) continue;

    const outcome = await ports.invoke(fresh);
    if (outcome.kind === 'throttled') {
      if (!(await ports.pause(PAUSES.firstMs))) return false;
      segments.unshift({ records: fresh, failures: segment.failures });
      continue;
    }
    const firstFailed = firstFailedIndex(outcome, fresh, policy.reportBatchItemFailures);
    if (firstFailed === undefined) continue;

    const rest = fresh.slice(firstFailed);
    const failures = firstFailed === 0 ? segment.failures + 1 : 1;
    if (policy.bisectBatchOnError && firstFailed === 0 && rest.length > 1) {
      const middle = Math.ceil(rest.length / 2);
      segments.unshift(
        { records: rest.slice(0, middle), failures: segment.failures },
        { records: rest.slice(middle), failures: 0 },
      );
      continue;
    }
    if (failures > policy.maximumRetryAttempts) {
      ports.discard(rest, 'RetryAttemptsExhausted', failures);
      continue;
    }
    if (!(await ports.pause(backoffMs(PAUSES, failures - 1)))) return false;
    segments.unshift({ records: rest, failures });
  }
  return true;
}

function splitByAge(records: readonly StreamRecord[], nowMs: number, maximumAgeSeconds: number) {
  const isFresh = ({ dynamodb: { ApproximateCreationDateTime: atSeconds } }: StreamRecord) =>
    atSeconds === undefined || nowMs - atSeconds * 1_000 <= maximumAgeSeconds * 1_000;
  return { expired: records.filter((record) => !isFresh(record)), fresh: records.filter(isFresh) };
}

/** Index of the record to go on from; undefined when all went well. An answer that names no known record fails all. */
function firstFailedIndex(
  outcome: InvocationOutcome,
  records: readonly StreamRecord[],
  reportsItemFailures: boolean,
): number | undefined {
  if (outcome.kind !== 'returned') return 0;
  if (!reportsItemFailures) return undefined;
  const failed = batchItemFailures(outcome.payload);
  if (failed === 'malformed') return 0;
  if (failed.length === 0) return undefined;
  const indexes = failed.map((id) => records.findIndex((record) => record.dynamodb.SequenceNumber === id));
  return indexes.includes(-1) ? 0 : Math.min(...indexes);
}

/** The item identifiers of `{"batchItemFailures":[{"itemIdentifier":…}]}`; an empty answer is success. */
export function batchItemFailures(payload: string): readonly string[] | 'malformed' {
  const answer: unknown = JSON.parse(payload);
  if (answer === null || answer === undefined) return [];
  if (!isObject(answer)) return 'malformed';
  const failures = answer['batchItemFailures'] ?? [];
  if (!Array.isArray(failures)) return 'malformed';
  const ids = failures.map((failure) => (isObject(failure) ? failure['itemIdentifier'] : undefined));
  return ids.every((id) => typeof id === 'string' && id !== '') ? (ids as string[]) : 'malformed';
}
