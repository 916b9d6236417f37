/**
 * Computes dollars per month from the counts. Pure: the same measurement, settings and prices yield the same bill.
 *
 * A month of N nodes is idle time, heartbeats, status posts and lists of pods, and the growth of ticks with each row.
 * Ticks scan the health table in segments and whole units of 4 KB. No small fleet shows that, so it is computed from
 * the measured size of a row.
 *
 * Lambda time is not measured, because local milliseconds differ from Lambda's. It is estimated from the measured CPU
 * time, the CPU share of the function's memory, and an assumed wait for tables and probes. The bill also shows the time
 * on the measuring machine, and the minimum that is billed, one millisecond per invocation.
 */

import { LIST_WITHOUT_PODS_MS } from '../../agent/app/pod-loop.ts';
import { CHECK_INTERVAL_MS } from '../../agent/app/relay-route.ts';
import { COLLECT_AFTER_LEADER_MS, collectMs, isRelayUsable, RELAY_WAIT_MS } from '../../agent/rules/relay-use.ts';
import type { FunctionName } from '../../functions/function-list.ts';
import { type Dollars, SECONDS_A_MONTH, SECONDS_PER_DAY } from '../../shared/cost/prices.ts';
import { COST_PERIOD_SECONDS } from '../../shared/cost/running-cost.ts';
import { scanSegmentsFor } from '../../shared/fleet/nodes/health-store.ts';
import { LEASE_BATCH_ITEMS_MAX } from '../../shared/fleet/nodes/lease-batch.ts';
import { defaultPolicy, INTERVAL_JITTER } from '../../shared/fleet/policy.ts';
import { type FunctionTaken, type Measurement, NOTHING, notNegative, plus, type Taken, times } from './measurement.ts';

export interface BillSettings {
  readonly nodes: number;
  readonly beatSeconds: number;
  /** Heartbeats arrive through the HTTP API, or through the URL of function heartbeat. */
  readonly door: 'api' | 'url';
  /** Machines that send their heartbeats through one relay; 0: each sends its own. */
  readonly relayMachines: number;
  readonly billing: 'onDemand' | 'provisioned';
  /** Watches that are open at any time. */
  readonly watchers: number;
  /** Watches per day with a client that disconnects. Each runs on until it was quiet for `watchQuietSeconds`. */
  readonly abandonedWatchesPerDay: number;
  /** Times per month that a node becomes not Ready and Ready again. */
  readonly failuresPerNode: number;
  /** New TLS connections per node and day. An agent keeps one connection for all its requests. */
  readonly connectionsPerNodeDay: number;
  readonly podsPerNode: number;
  readonly zones: number;
  readonly lambdaTime: 'estimated' | 'clock' | 'floor';
  /** Pollers that Lambda keeps on a queue with few messages, from `POLLERS_MIN` to `POLLERS`. */
  readonly idlePollers: number;
}

export interface BillLine {
  readonly item: string;
  /** Per month. */
  readonly quantity: number;
  readonly unit: string;
  readonly dollars: number;
}

export interface Bill {
  readonly settings: BillSettings;
  readonly lines: readonly BillLine[];
  readonly dollars: number;
}

export interface BillReport {
  readonly bill: Bill;
  /** The same cluster without nodes, watches and zones. */
  readonly idle: Bill;
  /** The same, if Lambda keeps all its pollers on every queue. */
  readonly idleWithAllPollers: Bill;
  /** The idle cluster in an account that uses its free allowances for nothing else. Dollars per month. */
  readonly idleAfterAllowances: number;
  /** Additional cost per node, over an empty cluster with the same zones and watches. Dollars per month. */
  readonly dollarsPerNode: number;
  /** The same without data transfer to the internet, which such figures often exclude. */
  readonly dollarsPerNodeWithoutDataOut: number;
}

/** Interval of the agent's status posts, and of its pod lists while it has pods. */
const REPORT_SECONDS = 300;
/**
 * How long an abandoned watch runs when there are no events. "Streamed responses are not interrupted or stopped when
 * the invoking client connection is broken" (AWS Lambda Developer Guide, "Response streaming for Lambda functions").
 */
const ABANDONED_WATCH_SECONDS = defaultPolicy.watchQuietSeconds;
/** NodeNotReady and NodeReady (docs/events). */
const EVENTS_PER_FAILURE = 2;
/** Sent by the server in a full TLS 1.3 handshake: measured with a chain of three RSA 2048 certificates, as ACM has. */
export const HANDSHAKE_BYTES = 5_364;
/** First tier of the HTTP API, all HTTP APIs of the account together. Requests per month. */
const HTTP_API_FIRST_TIER = 300e6;
/** Assumed: lifetime of each pod of a node. */
export const POD_LIFE_SECONDS = SECONDS_PER_DAY;
/**
 * Lambda reads a queue with five pollers, and "can" scale down to two with few messages, unless the source has a
 * maximum concurrency. Each poller asks again after 20 s without a message.
 * Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings".
 */
export const POLLERS = 5;
export const POLLERS_MIN = 2;
/**
 * Two probes of a tick renew one Lease, one through each way. The one with the older version is refused and repeated: a
 * write unit more. Assumed for every second tick, as if their order were chance.
 */
const REFUSED_PROBES_PER_TICK = 0.5;
/**
 * CPU time of the check of one signature. Each item of a batch has a token of its own, where a direct heartbeat uses
 * one for minutes. Batches are measured with a token that is compared (docs/decisions/0007-node-keys.md).
 */
const SIGNATURE_CHECK_CPU_MS = 0.15;
/** Updates of one batch that run at a time (functions/heartbeat/lease-batch.ts). */
const BATCH_ITEMS_AT_ONCE = 16;
const EMPTY_RECEIVE_SECONDS = 20;
const SECONDS_AN_HOUR = 3_600;
const PAGE_BYTES = 4_096;
/** An eventually consistent read of one page. */
const PAGE_READ_UNITS = 0.5;
const PROVISIONED_UTILISATION = 0.7;
const PROVISIONED_UNITS_MIN = 5;
/** CloudWatch alarms of DynamoDB's autoscaling, per table and direction. */
const ALARMS_PER_SCALING_TARGET = 4;
/** On demand in each mode (cdk/lib/capacity.ts). */
const ON_DEMAND_TABLES: readonly string[] = ['control'];
const PROVISIONED_TABLES = 2;
/** Memory at which Lambda provides one CPU; less memory has a proportional share. */
const MEGABYTES_PER_CPU = 1_769;
/**
 * Assumed: waiting for tables, 5 ms per sequential round trip. Quiet ticks: evictor reads the fleet, then what is due;
 * cloud-node and pod-gc read their list. Milliseconds per invocation.
 */
const WAIT_MS = {
  heartbeat: 5,
  api: 10,
  evictor: 10,
  'cloud-node': 5,
  'pod-gc': 5,
} as const satisfies Partial<Record<FunctionName, number>>;
/**
 * The wait of node-monitor for the answer to its probe, the message of the next tick and who has work; and of all
 * others.
 */
const OTHER_WAIT_MS = 40;
const GIGABYTE = 1e9;
const MEGABYTES_PER_GIGABYTE = 1_024;
export const DATA_OUT = 'data out to the internet';
export const HANDSHAKES = 'data out, TLS handshakes';

type AddLine = (item: string, quantity: number, unit: string, price: number) => void;

/**
 * Counts of one heartbeat: what a fleet adds to an idle cluster, by function. Rounded to a tenth, because the edges of
 * a window cut off one or two heartbeats.
 */
function beatOf({ idle, fleets }: Measurement): Taken {
  const largest = fleets.at(-1)!;
  const more = plus(largest.taken, idle.taken, -largest.seconds / idle.seconds);
  const own = notNegative(times(more, 1 / largest.beats));
  const { invocations = 0, billedMs = 0, cpuMs = 0 } = own.functions['heartbeat'] ?? {};
  return {
    ...NOTHING,
    httpRequests: toTenth(own.httpRequests),
    answeredBytes: own.answeredBytes,
    streamRecords: own.streamRecords,
    functions: { heartbeat: { invocations: toTenth(invocations), billedMs, cpuMs } },
    // A tick's reads grow by whole pages and are counted separately; a heartbeat reads nothing.
    tables: { health: { readUnits: 0, writeUnits: toTenth(own.tables['health']?.writeUnits ?? 0) } },
  };
}

/** A heartbeat by the way that it arrives. */
const throughDoor = (taken: Taken, door: BillSettings['door']): Taken =>
  door === 'url' ? { ...taken, httpRequests: 0 } : taken;

/**
 * The average heartbeat of a machine. With a relay most are items of a batch, unless the interval is too short for one.
 */
function beatThrough(measurement: Measurement, { door, relayMachines, beatSeconds }: BillSettings): Taken {
  const direct = throughDoor(beatOf(measurement), door);
  if (relayMachines === 0 || !isRelayUsable(1_000 * beatSeconds)) return direct;
  const items = batchItems(Math.min(relayMachines, LEASE_BATCH_ITEMS_MAX), beatSeconds);
  const relayed = throughDoor(relayedBeatOf(measurement, items), door);
  const directShare = Math.min(1, (1_000 * beatSeconds) / CHECK_INTERVAL_MS);
  return plus(times(direct, directShare), relayed, 1 - directShare);
}

/**
 * Heartbeats per batch. Machines of one batch send the next heartbeat together, because each counts its interval from
 * the answer: the batches of a site have all its machines. With a long interval its random part is longer than the wait
 * for the leader. Then heartbeats stay spread, and a batch has those of the time of collecting (docs/relay.md has both,
 * measured). From 13 to 30 s batches are larger in truth, so the bill is an upper bound.
 */
export function batchItems(machines: number, beatSeconds: number): number {
  const beatMs = 1_000 * beatSeconds;
  if (INTERVAL_JITTER * beatMs <= COLLECT_AFTER_LEADER_MS) return machines;
  return 1 + (machines - 1) * Math.min(1, collectMs(RELAY_WAIT_MS, beatMs) / beatMs);
}

/**
 * Counts of one item of a batch.
 *
 * @throws Error if the measurement has no batches
 */
function relayedBeatOf({ batches = [], standing }: Measurement, items: number): Taken {
  const [small, large] = [batches[0], batches.at(-1)];
  if (small === undefined || large === undefined || small.items >= large.items) {
    throw new Error('the measurement has no batches of heartbeats: measure again without --from');
  }
  const perItem = times(plus(large.taken, small.taken, -1), 1 / (large.items - small.items));
  const batch = notNegative(plus(large.taken, perItem, items - large.items));
  const { billedMs = 0, cpuMs = 0 } = batch.functions['heartbeat'] ?? {};
  const share = Math.min(1, (standing.memoryMegabytes['heartbeat'] ?? MEGABYTES_PER_CPU) / MEGABYTES_PER_CPU);
  // The bill adds the wait of one round trip per invocation.
  const furtherWaitMs = (Math.ceil(items / BATCH_ITEMS_AT_ONCE) - 1) * WAIT_MS.heartbeat;
  const heartbeat = {
    invocations: 1 / items,
    billedMs: billedMs / items,
    cpuMs: (cpuMs + furtherWaitMs * share) / items + SIGNATURE_CHECK_CPU_MS,
  };
  return {
    ...NOTHING,
    httpRequests: 1 / items,
    answeredBytes: batch.answeredBytes / items,
    streamRecords: batch.streamRecords / items,
    functions: { heartbeat },
    tables: { health: { readUnits: 0, writeUnits: toTenth((batch.tables['health']?.writeUnits ?? 0) / items) } },
  };
}

const toTenth = (value: number): number => Math.round(value * 10) / 10;

/** A heartbeat logs nothing, ticks log the metrics of zones. Bytes per second. */
function logBytesOfZone({ idle, fleets, zones }: Measurement): number {
  const largest = fleets.at(-1)!;
  return Math.max(0, largest.taken.logBytes / largest.seconds - idle.taken.logBytes / idle.seconds) / zones;
}

/** Additional run time of the ticks of one second per node. */
function tickGrowth({ idle, fleets }: Measurement, nodes: number): Taken['functions'] {
  const largest = fleets.at(-1)!;
  const perSecond = plus(times(largest.taken, 1 / largest.seconds), times(idle.taken, 1 / idle.seconds), -1);
  return Object.fromEntries(
    Object.entries(perSecond.functions)
      .filter(([name]) => name !== 'heartbeat')
      .map(([name, { billedMs, cpuMs }]) => {
        const grown = (ms: number): number => (Math.max(0, ms) / largest.nodes) * nodes;
        return [name, { invocations: 0, billedMs: grown(billedMs), cpuMs: grown(cpuMs) }];
      }),
  );
}

/** Read units of a tick beyond those for an empty table. */
export function tickReadUnits(nodes: number, rowBytes: number): number {
  const segments = scanSegmentsFor(nodes);
  const pages = Math.max(1, Math.ceil(((nodes / segments) * rowBytes) / PAGE_BYTES));
  return (segments * pages - scanSegmentsFor(0)) * PAGE_READ_UNITS;
}

function takenASecond(measurement: Measurement, settings: BillSettings): Taken {
  const { nodes, beatSeconds, podsPerNode, watchers } = settings;
  const { each, idle, tickSeconds, bytes } = measurement;
  const reports = nodes / REPORT_SECONDS;
  // The only requests of an idle cluster are node-monitor's probes. They stay in the Region, as free traffic.
  // Source: AWS Lambda pricing, "Data Transfer".
  let sum: Taken = { ...times(idle.taken, 1 / idle.seconds), answeredBytes: 0 };
  sum = plus(sum, beatThrough(measurement, settings), nodes / beatSeconds);
  // One probe more per tick: the HTTP API stays in service.
  if (settings.door === 'url') {
    const probe = { ...throughDoor(beatOf(measurement), 'url'), answeredBytes: 0 };
    const refused = { ...NOTHING, tables: { health: { readUnits: 0, writeUnits: REFUSED_PROBES_PER_TICK } } };
    sum = plus(sum, plus(probe, refused, 1), 1 / tickSeconds);
  }
  sum = plus(sum, each.statusPost, reports);
  sum = plus(sum, each.podList, podsPerNode > 0 ? reports : (1_000 * nodes) / LIST_WITHOUT_PODS_MS);
  sum = plus(sum, each.podLife, (nodes * podsPerNode) / POD_LIFE_SECONDS);
  sum = plus(sum, each.watchSecond, watchers + abandonedWatches(settings));
  return plus(sum, {
    ...times(sum, 0),
    functions: tickGrowth(measurement, nodes),
    tables: { health: { readUnits: tickReadUnits(nodes, bytes.healthRow) / tickSeconds, writeUnits: 0 } },
  });
}

/** Abandoned watches that run at any time. */
const abandonedWatches = ({ abandonedWatchesPerDay }: BillSettings): number =>
  (abandonedWatchesPerDay * ABANDONED_WATCH_SECONDS) / SECONDS_PER_DAY;

function addHttpApi(add: AddLine, requests: number, prices: Dollars): void {
  const first = Math.min(requests, HTTP_API_FIRST_TIER);
  add('HTTP API', first, 'requests', prices.httpApiRequest);
  add('HTTP API, above 300 million', requests - first, 'requests', prices.httpApiRequestAbove300Million);
}

/** Nothing here comes from the measurement: these are assumptions of the settings. */
function addEventsAndConnections(add: AddLine, settings: BillSettings, prices: Dollars): void {
  const { nodes, failuresPerNode, connectionsPerNodeDay } = settings;
  add('EventBridge custom events', nodes * failuresPerNode * EVENTS_PER_FAILURE, 'events', prices.eventPublished);
  const connections = (nodes * connectionsPerNodeDay * SECONDS_A_MONTH) / SECONDS_PER_DAY;
  add(HANDSHAKES, (connections * HANDSHAKE_BYTES) / GIGABYTE, 'GB', prices.dataOutGigabyte);
}

function lambdaMs(
  name: string,
  { invocations, billedMs, cpuMs }: FunctionTaken,
  memoryMegabytes: number,
  lambdaTime: BillSettings['lambdaTime'],
): number {
  if (lambdaTime === 'floor') return invocations;
  if (lambdaTime === 'clock') return billedMs;
  const share = Math.min(1, memoryMegabytes / MEGABYTES_PER_CPU);
  return cpuMs / share + invocations * ((WAIT_MS as Readonly<Record<string, number>>)[name] ?? OTHER_WAIT_MS);
}

export function billOf(measurement: Measurement, settings: BillSettings, prices: Dollars): Bill {
  const { standing, metrics, bytes } = measurement;
  const { nodes, zones, watchers, podsPerNode } = settings;
  const month = times(takenASecond(measurement, settings), SECONDS_A_MONTH);
  const lines: BillLine[] = [];
  const add: AddLine = (item, quantity, unit, price) => {
    lines.push({ item, quantity, unit, dollars: quantity * price });
  };

  addHttpApi(add, month.httpRequests, prices);
  let invocations = 0;
  const functions = { watch: { invocations: 0, billedMs: 0, cpuMs: 0 }, ...month.functions };
  for (const [name, taken] of Object.entries(functions).sort()) {
    const held = watchers + abandonedWatches(settings);
    const watchMs = name === 'watch' ? held * SECONDS_A_MONTH * 1_000 : 0;
    const memory = standing.memoryMegabytes[name] ?? 0;
    const ms = lambdaMs(name, taken, memory, settings.lambdaTime) + watchMs;
    const gigabytes = memory / MEGABYTES_PER_GIGABYTE;
    invocations += taken.invocations;
    add(`Lambda time, ${name}`, (ms / 1_000) * gigabytes, 'GB-seconds', prices.lambdaGigabyteSecond);
  }
  add('Lambda invocations', invocations, 'invocations', prices.lambdaRequest);
  addTables(add, month, settings, prices);
  add('DynamoDB streams, read by Lambda', month.streamRecords, 'records', 0);
  const stored = (nodes * (bytes.healthRow + bytes.node + podsPerNode * bytes.pod)) / GIGABYTE;
  add('DynamoDB storage', stored, 'GB', prices.tableGigabyteMonth);
  add('DynamoDB point-in-time recovery', stored, 'GB', prices.recoveryGigabyteMonth);
  // A message is sent, received and deleted. Those of the watchdog are sent by a schedule, at the same price.
  add('SQS, ticks', 3 * month.messages, 'requests', prices.sqsRequest);
  const { polledQueues, limitedQueues } = standing;
  const pollers = limitedQueues * POLLERS + (polledQueues - limitedQueues) * settings.idlePollers;
  add('SQS, empty receives', (pollers / EMPTY_RECEIVE_SECONDS) * SECONDS_A_MONTH, 'requests', prices.sqsRequest);
  add('EventBridge Scheduler', month.schedulerInvocations, 'invocations', prices.schedulerInvocation);
  const logBytes = month.logBytes + zones * logBytesOfZone(measurement) * SECONDS_A_MONTH;
  add('CloudWatch logs', logBytes / GIGABYTE, 'GB', prices.logGigabyte);
  add('CloudWatch metrics', metrics.fixed + zones * metrics.perZone, 'metrics', prices.metricMonth);
  const shareOfHours = SECONDS_AN_HOUR / COST_PERIOD_SECONDS;
  add('CloudWatch metrics, some hours a day', metrics.quarterly * shareOfHours, 'metrics', prices.metricMonth);
  const scaling = settings.billing === 'provisioned' ? 2 * PROVISIONED_TABLES * ALARMS_PER_SCALING_TARGET : 0;
  add('CloudWatch alarms', standing.alarmMetrics + scaling, 'metrics of alarms', prices.alarmMetricMonth);
  add('CloudWatch composite alarms', standing.compositeAlarms, 'alarms', prices.compositeAlarmMonth);
  add('CloudWatch dashboard', standing.dashboards, 'dashboards', prices.dashboardMonth);
  if (standing.customerKeys > 0) add('KMS', standing.customerKeys, 'keys', prices.keyMonth);
  add(DATA_OUT, month.answeredBytes / GIGABYTE, 'GB', prices.dataOutGigabyte);
  addEventsAndConnections(add, settings, prices);
  return { settings, lines, dollars: lines.reduce((sum, line) => sum + line.dollars, 0) };
}

function addTables(add: AddLine, month: Taken, { billing }: BillSettings, prices: Dollars): void {
  for (const [name, { readUnits, writeUnits }] of Object.entries(month.tables).sort()) {
    if (billing === 'onDemand' || ON_DEMAND_TABLES.includes(name)) {
      add(`DynamoDB writes, ${name}`, writeUnits, 'write units', prices.writeUnit);
      add(`DynamoDB reads, ${name}`, readUnits, 'read units', prices.readUnit);
      continue;
    }
    const capacity = (units: number): number =>
      Math.max(PROVISIONED_UNITS_MIN, Math.ceil(units / SECONDS_A_MONTH / PROVISIONED_UTILISATION));
    add(`DynamoDB writes, ${name}`, capacity(writeUnits), 'write capacity units', prices.writeCapacityMonth);
    add(`DynamoDB reads, ${name}`, capacity(readUnits), 'read capacity units', prices.readCapacityMonth);
  }
}

export interface BillRow {
  readonly nodes: number;
  readonly onDemand: BillReport;
  readonly provisioned: BillReport;
}

/** Both billing modes of the tables for each size of the fleet. */
export const billRows = (
  measurement: Measurement,
  sizes: readonly number[],
  settings: BillSettings,
  prices: Dollars,
): BillRow[] =>
  sizes.map((nodes) => {
    // Zones are those of nodes.
    const fleet = { ...settings, nodes, zones: nodes === 0 ? 0 : settings.zones };
    return {
      nodes,
      onDemand: billReport(measurement, { ...fleet, billing: 'onDemand' }, prices),
      provisioned: billReport(measurement, { ...fleet, billing: 'provisioned' }, prices),
    };
  });

interface Allowance {
  /** Beginning of the items that share it. */
  readonly items: string;
  /** Per month and account. */
  readonly quantity: number;
}

/**
 * Free allowances of each account that have no end, unlike those of an account's first year. A dashboard is free with
 * up to 50 metrics. Sources: pricing pages of CloudWatch, Lambda, SQS, DynamoDB, EventBridge (Scheduler) and EC2 (data
 * transfer), section "Free tier".
 */
const ALLOWANCES: readonly Allowance[] = [
  { items: 'Lambda time', quantity: 400_000 },
  { items: 'Lambda invocations', quantity: 1e6 },
  { items: 'SQS', quantity: 1e6 },
  { items: 'EventBridge Scheduler', quantity: 14e6 },
  { items: 'CloudWatch logs', quantity: 5 },
  { items: 'CloudWatch metrics', quantity: 10 },
  { items: 'CloudWatch alarms', quantity: 10 },
  { items: 'CloudWatch dashboard', quantity: 3 },
  { items: 'DynamoDB storage', quantity: 25 },
  { items: 'data out', quantity: 100 },
];
/** Together for all provisioned tables of the account. */
const PROVISIONED_ALLOWANCES: readonly Allowance[] = [
  { items: 'DynamoDB writes', quantity: 25 },
  { items: 'DynamoDB reads', quantity: 25 },
];

/** The units of tables on demand: none are free. */
const REQUEST_UNITS: readonly string[] = ['write units', 'read units'];

export function dollarsAfterAllowances({ lines, dollars }: Bill, billing: BillSettings['billing']): number {
  const allowances = billing === 'provisioned' ? [...ALLOWANCES, ...PROVISIONED_ALLOWANCES] : ALLOWANCES;
  return allowances.reduce((rest, { items, quantity }) => {
    const sharing = lines.filter(({ item, unit }) => item.startsWith(items) && !REQUEST_UNITS.includes(unit));
    const used = sharing.reduce((sum, line) => sum + line.quantity, 0);
    const free = used === 0 ? 0 : Math.min(1, quantity / used);
    return rest - free * sharing.reduce((sum, line) => sum + line.dollars, 0);
  }, dollars);
}

export function billReport(measurement: Measurement, settings: BillSettings, prices: Dollars): BillReport {
  const bill = billOf(measurement, settings, prices);
  const idleSettings = { ...settings, nodes: 0, zones: 0, watchers: 0, abandonedWatchesPerDay: 0 };
  const idle = billOf(measurement, idleSettings, prices);
  const dataOut = ({ lines }: Bill): number =>
    lines.reduce((sum, { item, dollars }) => sum + (item === DATA_OUT || item === HANDSHAKES ? dollars : 0), 0);
  // Zones and watches belong to no node.
  const empty = billOf(measurement, { ...settings, nodes: 0 }, prices);
  const perNode = (more: number): number => (settings.nodes === 0 ? 0 : more / settings.nodes);
  return {
    bill,
    idle,
    idleAfterAllowances: dollarsAfterAllowances(idle, settings.billing),
    idleWithAllPollers: billOf(measurement, { ...idleSettings, idlePollers: POLLERS }, prices),
    dollarsPerNode: perNode(bill.dollars - empty.dollars),
    dollarsPerNodeWithoutDataOut: perNode(bill.dollars - dataOut(bill) - (empty.dollars - dataOut(empty))),
  };
}
