/** Reserved concurrency: no function can use up the executions that heartbeats and ticks need. */

import { type FunctionName, functionList } from '../../functions/function-list.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { type Capacity, fleetSize } from './capacity.ts';

export interface ConcurrencyProps {
  readonly nodesMax?: number;
  readonly capacity?: Capacity;
  readonly accountConcurrency?: number;
  readonly reservedConcurrency?: { readonly [functionName: string]: number };
  readonly markConcurrencyMax?: number;
}

export type ReservedConcurrency = Readonly<Partial<Record<FunctionName, number>>>;

/** A fault of a prop, as cluster-options.ts reports it. */
interface ConcurrencyFault {
  readonly prop: string;
  readonly value: unknown;
  readonly rule: string;
}

/**
 * Executions that must stay unreserved in an account and Region. Lambda refuses a reservation that leaves less, so an
 * account with a limit of 100 or less can reserve nothing.
 * Source: AWS Lambda API Reference, "PutFunctionConcurrency".
 */
export const UNRESERVED_MIN = 100;
/** Time of a heartbeat when DynamoDB is slow. Seconds. */
const SLOW_BEAT_SECONDS = 0.1;
/** A whole fleet may recover at once. */
const BEATS_FACTOR = 2;
const HEARTBEAT_MIN = 100;
/**
 * A reservation is also a maximum. `api` and `watch` are limited: a retry storm stops there, and so do abandoned
 * watches. Each of these holds an execution until it was quiet for `watchQuietSeconds`, at most 15 minutes. The ticks
 * have executions of their own. Lambda starts with five batches of a queue at once. A lower reservation would throttle
 * them. Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings".
 */
const RESERVED = { api: 100, watch: 50, 'node-monitor': 10, evictor: 5 } as const satisfies ReservedConcurrency;

/** Bounds of Lambda. Source: AWS Lambda API Reference, "ScalingConfig". */
export const MARK_CONCURRENCY_MIN = 2;
export const MARK_CONCURRENCY_MAX = 1_000;
/** AWS's default limit. A new account may have 10: then the deployment is refused before it changes anything. */
const ACCOUNT_CONCURRENCY_DEFAULT = 1_000;
/** Share of an account's executions that marks may use. */
export const MARK_SHARE = 0.2;
/** 100,000 nodes are marked within three ticks; more executions would only conflict (docs/decisions/0027). */
export const MARK_CONCURRENCY = 32;

/** The reservations for an account with this limit: none when they would leave less than 100 unreserved. */
export function adviceFor(accountConcurrency: number, nodes: number, policy: Policy): ReservedConcurrency {
  const beats = Math.ceil((nodes / policy.beatIntervalSeconds) * BEATS_FACTOR * SLOW_BEAT_SECONDS);
  const advice = { heartbeat: Math.max(HEARTBEAT_MIN, beats), ...RESERVED };
  return accountConcurrency - sumOf(advice) >= UNRESERVED_MIN ? advice : {};
}

/** The reservations of the props, else those that the account's limit allows. A template cannot read that limit. */
export const reservedConcurrencyOf = (props: ConcurrencyProps, policy: Policy): ReservedConcurrency =>
  props.reservedConcurrency ??
  adviceFor(props.accountConcurrency ?? ACCOUNT_CONCURRENCY_DEFAULT, fleetSize(props), policy);

/**
 * Executions that mark nodes at once: as configured, or as many as are reserved for them. By default a fifth of the
 * account's executions, from Lambda's minimum of two to 32: a mass failure must not refuse heartbeats.
 */
export function markConcurrencyOf(props: ConcurrencyProps): number {
  const share = Math.floor((props.accountConcurrency ?? ACCOUNT_CONCURRENCY_DEFAULT) * MARK_SHARE);
  const wanted =
    props.markConcurrencyMax ?? props.reservedConcurrency?.['node-marker'] ?? Math.min(share, MARK_CONCURRENCY);
  return Math.min(MARK_CONCURRENCY_MAX, Math.max(MARK_CONCURRENCY_MIN, wanted));
}

export function concurrencyFaults(props: ConcurrencyProps): ConcurrencyFault[] {
  const { reservedConcurrency, accountConcurrency } = props;
  const faults: ConcurrencyFault[] = [];
  const names = functionList.map(({ name }): string => name);
  for (const [name, value] of Object.entries(reservedConcurrency ?? {})) {
    const prop = `reservedConcurrency.${name}`;
    if (!names.includes(name)) faults.push({ prop, value, rule: `is no function: ${names.join(', ')}` });
    else if (!Number.isInteger(value) || value < 1) {
      faults.push({ prop, value, rule: 'must be a whole number from 1: 0 would stop the function' });
    }
  }
  const reservedMarks = reservedConcurrency?.['node-marker'];
  const marks = markConcurrencyOf(props);
  if (faults.length === 0 && reservedMarks !== undefined && reservedMarks < marks) {
    // Lambda would receive messages that it cannot process: each throttled one counts as a receive.
    const rule = `must not be below the ${marks} executions that mark nodes at once (markConcurrencyMax, at least 2)`;
    faults.push({ prop: 'reservedConcurrency.node-marker', value: reservedMarks, rule });
  }
  const sum = sumOf(reservedConcurrency ?? {});
  if (faults.length === 0 && accountConcurrency !== undefined && sum > 0 && accountConcurrency - sum < UNRESERVED_MIN) {
    const rule = `must leave ${UNRESERVED_MIN} of the account's ${accountConcurrency} executions unreserved; it reserves ${sum}`;
    faults.push({ prop: 'reservedConcurrency', value: reservedConcurrency, rule });
  }
  return faults;
}

const sumOf = (reserved: Readonly<Record<string, number>>): number =>
  Object.values(reserved).reduce((sum, value) => sum + value, 0);
