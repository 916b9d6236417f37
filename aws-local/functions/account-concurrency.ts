/**
 * How many invocations run at once, as Lambda limits them per account and Region.
 *
 *   reserved     A function with ReservedConcurrentExecutions has that many for itself, and never more.
 *   unreserved   All other functions share the rest of the account's limit.
 *
 * An invocation above its limit is throttled at once: Lambda does not queue it. What follows depends on the caller.
 *
 * Sources: AWS Lambda Developer Guide, "Understanding Lambda function scaling", "Configuring reserved concurrency for a
 * function"; Lambda API Reference, "PutFunctionConcurrency".
 */
import { StartError } from '../../shared/host/start-error.ts';

/** Limit of an account that has raised nothing. A new account may have 10 (Lambda Developer Guide, "Lambda quotas"). */
export const ACCOUNT_CONCURRENCY_DEFAULT = 1_000;
/** Reservations must leave at least this many unreserved (PutFunctionConcurrency). */
const UNRESERVED_MIN = 100;

export interface ConcurrencyReport {
  readonly limit: number;
  /** Invocations that run now, and the most that ever ran at once. */
  readonly inUse: number;
  readonly mostInUse: number;
}

export interface AccountConcurrency {
  readonly report: ConcurrencyReport;
  /** Begins an invocation; undefined: it is throttled. */
  begin(functionId: string): { end(): void } | undefined;
  /** Reserves executions for a function; undefined: none. @returns false if Lambda refuses it */
  reserve(functionId: string, executions: number | undefined): boolean;
}

/**
 * @param limit the account's limit
 * @param reserved reserved concurrency by function
 * @throws StartError if AWS would refuse to deploy these reservations
 */
export function accountConcurrency(limit: number, reserved: ReadonlyMap<string, number>): AccountConcurrency {
  const reservedSum = [...reserved.values()].reduce((sum, each) => sum + each, 0);
  if (reservedSum > 0 && limit - reservedSum < UNRESERVED_MIN) {
    throw new StartError(
      `the template reserves ${reservedSum} concurrent executions of an account limit of ${limit}: ` +
        `Lambda requires at least ${UNRESERVED_MIN} unreserved ones`,
    );
  }
  const unreserved = { limit: limit - reservedSum, inUse: 0 };
  const pools = new Map([...reserved].map(([id, own]) => [id, { limit: own, inUse: 0 }]));
  let inUse = 0;
  let mostInUse = 0;
  return {
    get report() {
      return { limit, inUse, mostInUse };
    },
    reserve(functionId, executions) {
      const known = pools.get(functionId);
      const left = unreserved.limit + (known?.limit ?? 0) - (executions ?? 0);
      // Less than the minimum is unreserved in a new account: nothing can be reserved there, but 0.
      if ((executions ?? 0) > 0 && left < UNRESERVED_MIN) return false;
      unreserved.limit = left;
      if (executions === undefined) pools.delete(functionId);
      // Invocations that run count where they began.
      else pools.set(functionId, { limit: executions, inUse: known?.inUse ?? 0 });
      return true;
    },
    begin(functionId) {
      const pool = pools.get(functionId) ?? unreserved;
      if (pool.inUse >= pool.limit) return undefined;
      pool.inUse += 1;
      inUse += 1;
      mostInUse = Math.max(mostInUse, inUse);
      return {
        end() {
          pool.inUse -= 1;
          inUse -= 1;
        },
      };
    },
  };
}
