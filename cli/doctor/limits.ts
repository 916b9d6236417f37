/**
 * What fits into the limits of an account and Region. Pure. Load as in docs/operations/quotas.md: after a network
 * outage a whole fleet reconnects, so every limit must allow twice the requests.
 */
import { type Finding, fail, ok, warn } from './check.ts';

export interface Load {
  readonly nodes: number;
  readonly beatSeconds: number;
  /** Watches that are held at the same time. */
  readonly watches: number;
}

export interface LambdaLimits {
  readonly concurrency: number;
  /** Not reserved by any function. */
  readonly unreserved: number;
  readonly codeBytes: number;
  readonly codeBytesMax: number;
}

/** Interval of status posts. Seconds. */
const REPORT_SECONDS = 300;
const RECONNECT_FACTOR = 2;
/**
 * A slow heartbeat. It also is Lambda's limit of ten requests per second for each concurrent execution.
 * Source: AWS Lambda Developer Guide, "Understanding Lambda function scaling".
 */
const REQUEST_SECONDS = 0.1;
/** For ticks, streams and users of the API. Concurrent executions. */
const OTHERS = 20;
/** Source: AWS Lambda Developer Guide, "Configuring reserved concurrency for a function". */
const UNRESERVED_MIN = 100;
/** The reservations of the template (cdk/lib/concurrency.ts). A test compares them. */
const RESERVED = { api: 100, 'node-monitor': 10, evictor: 5 } as const;
const WATCH_RESERVED_MIN = 50;
const HEARTBEAT_RESERVED_MIN = 100;
/** A deployment needs two versions of the bundles for some time. Bytes. */
const CODE_BYTES_FREE_MIN = 100_000_000;
const CODE_SHARE_WARN = 0.8;
const GIGABYTE = 1e9;

export const CONCURRENCY_QUOTA = 'L-B99A9384';
export const THROTTLE_QUOTA = 'L-8A5B8E43';
export const TABLE_WRITES_QUOTA = 'L-AB614373';
export const TABLE_READS_QUOTA = 'L-CF0CBE56';

const raise = (service: string, quota: string, value: number, region: string): string =>
  `request ${number(value)}: aws service-quotas request-service-quota-increase --region ${region} ` +
  `--service-code ${service} --quota-code ${quota} --desired-value ${value}`;

const number = (value: number): string => value.toLocaleString('en-US');
const requestsPerNode = (beatSeconds: number): number => 1 / beatSeconds + 1 / REPORT_SECONDS;
/** Heartbeats and status posts of a fleet that reconnects. Per second. */
export const peakRequests = ({ nodes, beatSeconds }: Load): number =>
  Math.ceil(RECONNECT_FACTOR * nodes * requestsPerNode(beatSeconds));
const nodesFor = (requestsPerSecond: number, beatSeconds: number): number =>
  Math.max(0, Math.floor(requestsPerSecond / RECONNECT_FACTOR / requestsPerNode(beatSeconds)));
const peakConcurrency = (load: Load): number => Math.ceil(peakRequests(load) * REQUEST_SECONDS);
const fleetText = ({ nodes, beatSeconds }: Load): string =>
  `${number(nodes)} nodes with a heartbeat every ${beatSeconds} s`;

export function concurrencyFinding({ concurrency, unreserved }: LambdaLimits, load: Load, region: string): Finding {
  const forBeats = Math.max(0, unreserved - OTHERS - load.watches);
  const nodesFit = nodesFor(forBeats / REQUEST_SECONDS, load.beatSeconds);
  const watchesFit = Math.max(0, unreserved - OTHERS - peakConcurrency(load));
  const needed = peakConcurrency(load) + OTHERS + load.watches;
  const measured =
    `${number(concurrency)} concurrent executions, ${number(concurrency - unreserved)} reserved by functions; ` +
    `fits ${number(nodesFit)} nodes beside ${load.watches} watches, or ${number(watchesFit)} watches beside ${fleetText(load)}`;
  if (unreserved >= needed) return ok(measured);
  const target = Math.max(1_000, Math.ceil((needed + concurrency - unreserved) / 500) * 500);
  return fail(`${measured}; needs ${number(needed)} unreserved`, raise('lambda', CONCURRENCY_QUOTA, target, region));
}

/** Values for `reservedConcurrency`, by function. */
export const advisedReservation = ({ nodes, beatSeconds, watches }: Load): Readonly<Record<string, number>> => ({
  heartbeat: Math.max(HEARTBEAT_RESERVED_MIN, Math.ceil((nodes / beatSeconds) * RECONNECT_FACTOR * REQUEST_SECONDS)),
  watch: Math.max(WATCH_RESERVED_MIN, watches),
  ...RESERVED,
});

const sumOf = (reservation: Readonly<Record<string, number>>): number =>
  Object.values(reservation).reduce((all, each) => all + each, 0);

/**
 * Of a deployed cluster. Its heartbeats, requests and watches use what its functions have reserved, and need nothing
 * unreserved. An account does not say who has reserved what. undefined: less is reserved than this cluster reserves.
 */
export function reservedFinding({ concurrency, unreserved }: LambdaLimits, load: Load): Finding | undefined {
  const own = sumOf(advisedReservation(load));
  const reserved = concurrency - unreserved;
  if (reserved < own || unreserved < UNRESERVED_MIN) return undefined;
  return ok(
    `${number(reserved)} of ${number(concurrency)} concurrent executions are reserved by functions; ` +
      `${number(own)} are advised for ${fleetText(load)} and ${load.watches} watches`,
  );
}

/** What can be reserved before the first deployment. A held watch or a retry storm then cannot stop heartbeats. */
export function reservationFinding({ unreserved }: LambdaLimits, load: Load, region: string): Finding {
  const advised = advisedReservation(load);
  const sum = sumOf(advised);
  const reservable = Math.max(0, unreserved - UNRESERVED_MIN);
  const text = Object.entries(advised)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
  const rule = `AWS keeps ${UNRESERVED_MIN} unreserved, so ${number(reservable)} can be reserved`;
  if (sum <= reservable) {
    return ok(`${rule}; advised for ${fleetText(load)}, in "context" of cdk.json: "reservedConcurrency": "${text}"`);
  }
  return warn(
    `${rule}, fewer than advised: reservedConcurrency=${text}`,
    `deploy without reservedConcurrency, and ${raise('lambda', CONCURRENCY_QUOTA, 1_000 * Math.ceil((sum + UNRESERVED_MIN) / 1_000), region)}`,
  );
}

export function codeStorageFinding({ codeBytes, codeBytesMax }: LambdaLimits): Finding {
  const measured = `${(codeBytes / GIGABYTE).toFixed(1)} of ${(codeBytesMax / GIGABYTE).toFixed(1)} GB of function code are used`;
  const next = 'delete old function versions of this account and Region, or request more code storage';
  if (codeBytesMax - codeBytes < CODE_BYTES_FREE_MIN) return fail(measured, next);
  return codeBytes > CODE_SHARE_WARN * codeBytesMax ? warn(measured, next) : ok(measured);
}

/** One throttle for all APIs of the account in the Region. Source: API Gateway Developer Guide, "Quotas". */
export function throttleFinding(requestsPerSecond: number, load: Load, region: string): Finding {
  const needed = peakRequests(load);
  const measured =
    `${number(requestsPerSecond)} requests per second for all APIs of the account; ` +
    `fits ${number(nodesFor(requestsPerSecond, load.beatSeconds))} nodes`;
  if (requestsPerSecond >= needed) return ok(measured);
  return fail(
    `${measured}; ${fleetText(load)} need ${number(needed)} while they reconnect`,
    raise('apigateway', THROTTLE_QUOTA, Math.ceil(needed / 1_000) * 1_000, region),
  );
}

/** The finding about one table. Source: DynamoDB Developer Guide, "Quotas", throughput default quotas. */
export function tableFinding(
  units: { readonly reads: number; readonly writes: number },
  load: Load,
  region: string,
): Finding {
  const needed = peakRequests(load);
  const measured =
    `${number(units.writes)} write and ${number(units.reads)} read units per second and table; ` +
    `fits ${number(nodesFor(units.writes, load.beatSeconds))} nodes`;
  if (units.writes >= needed) return ok(measured);
  return fail(
    `${measured}; ${fleetText(load)} need ${number(needed)} while they reconnect`,
    raise('dynamodb', TABLE_WRITES_QUOTA, Math.ceil(needed / 10_000) * 10_000, region),
  );
}
