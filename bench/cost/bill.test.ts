import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PRICES, SECONDS_A_MONTH } from '../../shared/cost/prices.ts';
import {
  type Bill,
  type BillSettings,
  batchItems,
  billOf,
  billReport,
  billRows,
  DATA_OUT,
  HANDSHAKE_BYTES,
  HANDSHAKES,
  POLLERS_MIN,
  tickReadUnits,
} from './bill.ts';
import { seriesOf } from './measure.ts';
import { type Measurement, NOTHING, plus, type Taken, times } from './measurement.ts';
import { parseCostOptions } from './options.ts';
import { readMeasurement } from './recorded.ts';
import { standingOf } from './standing.ts';

const BEATS_PER_MONTH = 262_800;
const recordedFile = new URL('./measurement.json', import.meta.url);
const recorded = (): unknown => JSON.parse(readFileSync(recordedFile, 'utf8'));

const settings: BillSettings = {
  nodes: 100,
  beatSeconds: 10,
  door: 'api',
  relayMachines: 0,
  billing: 'onDemand',
  watchers: 0,
  abandonedWatchesPerDay: 0,
  failuresPerNode: 0,
  connectionsPerNodeDay: 0,
  podsPerNode: 0,
  zones: 0,
  lambdaTime: 'floor',
  idlePollers: POLLERS_MIN,
};
const a = (parts: Partial<Taken>): Taken => ({ ...NOTHING, ...parts });
const idleTaken = a({ messages: 12, schedulerInvocations: 2 });

/** In 60 s: messages of 12 ticks. With 100 nodes also 600 heartbeats. A post is a request and a write unit. */
const aMeasurement: Measurement = {
  measuredOn: '2026-01-01',
  machine: 'a machine',
  tickSeconds: 5,
  zones: 3,
  standing: {
    memoryMegabytes: { heartbeat: 256, watch: 128 },
    polledQueues: 4,
    limitedQueues: 1,
    customerKeys: 0,
    alarmMetrics: 10,
    compositeAlarms: 1,
    dashboards: 1,
    scalingTargets: 0,
  },
  metrics: { fixed: 5, perZone: 3, quarterly: 2 },
  bytes: { healthRow: 200, node: 3_000, pod: 2_000 },
  idle: { seconds: 60, taken: idleTaken },
  fleets: [
    {
      nodes: 100,
      beats: 600,
      seconds: 60,
      taken: plus(
        idleTaken,
        a({
          httpRequests: 600,
          functions: { heartbeat: { invocations: 600, billedMs: 6_000, cpuMs: 600 } },
          tables: { health: { readUnits: 0, writeUnits: 600 } },
        }),
      ),
    },
  ],
  each: {
    statusPost: a({ httpRequests: 1, tables: { health: { readUnits: 0, writeUnits: 1 } } }),
    podList: a({ httpRequests: 1 }),
    podLife: a({ httpRequests: 8, tables: { objects: { readUnits: 0, writeUnits: 100 } } }),
    watchSecond: a({ tables: { objects: { readUnits: 2, writeUnits: 0 } } }),
  },
};

const lineOf = (bill: Bill, item: string) => bill.lines.find((line) => line.item === item);

describe('a bill', () => {
  it('counts what a heartbeat, a post and a list consumed', () => {
    const bill = billOf(aMeasurement, settings, PRICES);
    expect(lineOf(bill, 'HTTP API')?.quantity).toBeCloseTo(100 * (BEATS_PER_MONTH + 8_760 + 1_460), 0);
    expect(lineOf(bill, 'DynamoDB writes, health')?.quantity).toBeCloseTo(100 * (BEATS_PER_MONTH + 8_760), 0);
    expect(lineOf(bill, 'DynamoDB writes, health')?.dollars).toBeCloseTo(16.97, 2);
    expect(lineOf(bill, 'Lambda time, heartbeat')?.quantity).toBeCloseTo((100 * BEATS_PER_MONTH * 0.25) / 1_000, 0);
  });

  it('has no requests of the HTTP API for heartbeats through the URL, and one probe more per tick', () => {
    const through = (door: BillSettings['door']) => billOf(aMeasurement, { ...settings, door }, PRICES);
    const quantity = (bill: Bill, item: string) => bill.lines.find((line) => line.item === item)?.quantity ?? 0;
    const beats = 100 * BEATS_PER_MONTH;
    const probes = SECONDS_A_MONTH / aMeasurement.tickSeconds;
    expect(quantity(through('api'), 'HTTP API') - quantity(through('url'), 'HTTP API')).toBeCloseTo(beats, 0);
    const more = (item: string) => quantity(through('url'), item) - quantity(through('api'), item);
    expect(more('Lambda invocations')).toBeCloseTo(probes, 0);
    // Both probes renew one Lease. In every second tick one of them is refused and repeated.
    expect(more('DynamoDB writes, health')).toBeCloseTo(1.5 * probes, 0);
  });

  it('shares requests and invocations between the heartbeats of a batch, and no write unit', () => {
    const health = (writeUnits: number) => ({ health: { readUnits: 0, writeUnits } });
    const batch = (items: number) => {
      const functions = { heartbeat: { invocations: 1, billedMs: 2 * items, cpuMs: 1 + items } };
      return {
        items,
        taken: a({ httpRequests: 1, answeredBytes: 100 + 200 * items, functions, tables: health(items) }),
      };
    };
    const measured = { ...aMeasurement, batches: [batch(5), batch(25)] };
    const bill = (more: Partial<BillSettings>) => billOf(measured, { ...settings, ...more }, PRICES);
    // One heartbeat in 30 is sent directly, to check the relay.
    const relayed = (100 * BEATS_PER_MONTH * 29) / 30;
    const direct = (100 * BEATS_PER_MONTH) / 30;
    const others = 100 * (8_760 + 1_460);
    for (const machines of [10, 25, 100]) {
      const viaApi = bill({ relayMachines: machines });
      expect(lineOf(viaApi, 'HTTP API')?.quantity).toBeCloseTo(relayed / machines + direct + others, 0);
      expect(lineOf(viaApi, 'Lambda invocations')?.quantity).toBeCloseTo(relayed / machines + direct, 0);
      expect(lineOf(viaApi, 'DynamoDB writes, health')?.quantity).toBeCloseTo(100 * (BEATS_PER_MONTH + 8_760), 0);
      expect(lineOf(bill({ relayMachines: machines, door: 'url' }), 'HTTP API')?.quantity).toBeCloseTo(others, 0);
      const bytes = relayed * (200 + 100 / machines);
      expect(lineOf(viaApi, DATA_OUT)?.quantity).toBeCloseTo(bytes / 1e9, 6);
    }
    // A batch has 100 items at most.
    expect(bill({ relayMachines: 300 }).dollars).toBe(bill({ relayMachines: 100 }).dollars);
    // With an interval of 60 s heartbeats stay spread: one in five is sent directly, the others in batches of 1.8.
    const slow = lineOf(bill({ relayMachines: 25, beatSeconds: 60 }), 'Lambda invocations')?.quantity;
    expect(slow).toBeCloseTo(((100 * BEATS_PER_MONTH) / 6) * (1 / 5 + 4 / 5 / 1.8), 0);
    // With an interval of 5 s machines do not use their relay.
    expect(bill({ relayMachines: 25, beatSeconds: 5 }).dollars).toBe(bill({ beatSeconds: 5 }).dollars);
  });

  // docs/relay.md has the figures of the relay itself: 25, 100, 1.9 and 4.1.
  it.each([
    [25, 10, 25],
    [100, 12.5, 100],
    [25, 60, 1.8],
    [100, 60, 4.3],
  ])('has batches of %d machines, every %d s, with %d heartbeats', (machines, beatSeconds, items) => {
    expect(batchItems(machines, beatSeconds)).toBeCloseTo(items, 6);
  });

  it('estimates Lambda time of a batch from its items, a signature check for each, and its round trips', () => {
    const functions = (cpuMs: number) => ({ heartbeat: { invocations: 1, billedMs: 0, cpuMs } });
    const batches = [
      { items: 5, taken: a({ functions: functions(6) }) },
      { items: 25, taken: a({ functions: functions(26) }) },
    ];
    const all = { ...settings, lambdaTime: 'estimated', relayMachines: 25, beatSeconds: 10 } as const;
    const bill = billOf({ ...aMeasurement, batches }, all, PRICES);
    // 26 ms of CPU and two round trips per batch; 0.15 ms per signature.
    const cpuMsEach = 26 / 25 + 0.15;
    const relayedMs = (cpuMsEach * 1_769) / 256 + (2 * 5) / 25;
    const directMs = 1_769 / 256 + 5;
    const perBeatMs = (29 * relayedMs + directMs) / 30;
    expect(lineOf(bill, 'Lambda time, heartbeat')?.quantity).toBeCloseTo(
      (100 * BEATS_PER_MONTH * perBeatMs * 0.25) / 1_000,
      -2,
    );
  });

  it('needs a measurement with batches for relays', () => {
    expect(() => billOf(aMeasurement, { ...settings, relayMachines: 25 }, PRICES)).toThrow(
      'has no batches of heartbeats',
    );
  });

  it('halves the heartbeats when their interval is twice as long, and nothing else', () => {
    const bill = billOf(aMeasurement, { ...settings, beatSeconds: 20 }, PRICES);
    expect(lineOf(bill, 'HTTP API')?.quantity).toBeCloseTo(100 * (BEATS_PER_MONTH / 2 + 8_760 + 1_460), 0);
    for (const item of ['SQS, ticks', 'SQS, empty receives']) {
      expect(lineOf(bill, item)?.dollars).toBe(lineOf(billOf(aMeasurement, settings, PRICES), item)?.dollars);
    }
  });

  it('counts idle time without nodes, and the fixed resources', () => {
    const { idle, idleWithAllPollers } = billReport(aMeasurement, settings, PRICES);
    expect(lineOf(idle, 'HTTP API')?.quantity).toBe(0);
    // 5 metrics, 2 in four hours of 24, 10 metrics of alarms, a composite alarm, a dashboard.
    const standing = (5 + 2 / 6) * 0.3 + 10 * 0.1 + 0.5 + 3;
    expect(idle.dollars).toBeGreaterThan(standing);
    // 525,600 messages, 87,600 calls of schedules, and the empty receives of a queue with five pollers, and three
    // with two.
    const queues = (3 * 525_600 + (5 + 3 * 2) * 131_400) * 0.4e-6 + 87_600 * 1e-6;
    expect(idle.dollars).toBeCloseTo(standing + queues, 2);
    expect(idleWithAllPollers.dollars - idle.dollars).toBeCloseTo(3 * 3 * 131_400 * 0.4e-6, 4);
  });

  it('states the idle bill after the free allowances of an account', () => {
    const { idle, idleAfterAllowances } = billReport(aMeasurement, settings, PRICES);
    // All metrics, alarms, calls of schedules and the dashboard are free; the composite alarm and 2.0 of 3.0 million
    // queue requests are not.
    const sqs = (3 * 525_600 + (5 + 3 * 2) * 131_400 - 1e6) * 0.4e-6;
    expect(idleAfterAllowances).toBeCloseTo(0.5 + sqs, 3);
    expect(idle.dollars - idleAfterAllowances).toBeGreaterThan(5);
  });

  it('charges requests above 300 million per month at the second price', () => {
    const bill = billOf(aMeasurement, { ...settings, nodes: 10_000 }, PRICES);
    // 262,800 heartbeats, 8,760 posts and 1,460 lists per node: 2,730.2 million.
    expect(lineOf(bill, 'HTTP API')).toMatchObject({ quantity: 300e6, dollars: 300 });
    expect(lineOf(bill, 'HTTP API, above 300 million')?.quantity).toBeCloseTo(2_430.2e6, -1);
    expect(lineOf(bill, 'HTTP API, above 300 million')?.dollars).toBeCloseTo(2_187.18, 2);
    expect(lineOf(billOf(aMeasurement, settings, PRICES), 'HTTP API, above 300 million')?.quantity).toBe(0);
  });

  it('charges an abandoned watch for the 5 minutes that it runs on', () => {
    const bill = billOf(aMeasurement, { ...settings, abandonedWatchesPerDay: 288 }, PRICES);
    // 288 times five minutes is one watch held all the time.
    const held = billOf(aMeasurement, { ...settings, watchers: 1 }, PRICES);
    expect(bill.dollars).toBeCloseTo(held.dollars, 9);
    expect(billReport(aMeasurement, { ...settings, abandonedWatchesPerDay: 288 }, PRICES).idle.dollars).toBeCloseTo(
      billReport(aMeasurement, settings, PRICES).idle.dollars,
      9,
    );
  });

  it('charges two events per failure of a node', () => {
    const bill = billOf(aMeasurement, { ...settings, nodes: 50_000, failuresPerNode: 10 }, PRICES);
    expect(lineOf(bill, 'EventBridge custom events')).toMatchObject({ quantity: 1_000_000 });
    expect(lineOf(bill, 'EventBridge custom events')?.dollars).toBeCloseTo(1, 9);
  });

  it('charges the bytes of TLS handshakes, and a connection per heartbeat costs 300 times as much', () => {
    const hourly = billOf(aMeasurement, { ...settings, connectionsPerNodeDay: 24 }, PRICES);
    // 100 nodes, 730 connections each.
    expect(lineOf(hourly, HANDSHAKES)?.quantity).toBeCloseTo((100 * 730 * HANDSHAKE_BYTES) / 1e9, 9);
    expect(lineOf(hourly, HANDSHAKES)?.dollars).toBeCloseTo(0.0352, 4);
    const each = billOf(aMeasurement, { ...settings, connectionsPerNodeDay: 8_640 }, PRICES);
    expect(lineOf(each, HANDSHAKES)?.dollars).toBeCloseTo(12.69, 2);
  });

  it('charges no data out for probes, which stay in the Region', () => {
    const idle = { ...aMeasurement.idle, taken: { ...idleTaken, httpRequests: 12, answeredBytes: 6_000 } };
    const [fleet] = aMeasurement.fleets;
    const taken = plus(fleet!.taken, a({ httpRequests: 12, answeredBytes: 6_000 + 600 * 500 }));
    const bill = billOf({ ...aMeasurement, idle, fleets: [{ ...fleet!, taken }] }, settings, PRICES);
    // The answers of the heartbeats alone, 500 bytes each.
    expect(lineOf(bill, DATA_OUT)?.quantity).toBeCloseTo((100 * BEATS_PER_MONTH * 500) / 1e9, 6);
  });

  it('is made for both billing modes of each size, and zones belong to nodes', () => {
    const rows = billRows(aMeasurement, [0, 10], { ...settings, zones: 3 }, PRICES);
    expect(rows.map(({ nodes }) => nodes)).toEqual([0, 10]);
    const [empty, ten] = rows as [(typeof rows)[0], (typeof rows)[0]];
    expect(empty.onDemand.bill).toEqual(billOf(aMeasurement, { ...settings, nodes: 0 }, PRICES));
    expect(ten.provisioned.bill.settings).toMatchObject({ nodes: 10, zones: 3, billing: 'provisioned' });
    expect(ten.onDemand.bill.dollars).toBeLessThan(ten.provisioned.bill.dollars);
  });

  it('charges a zone by its metrics and a watch by the run time of its environment', () => {
    const bill = billOf(aMeasurement, { ...settings, zones: 2, watchers: 1 }, PRICES);
    expect(lineOf(bill, 'CloudWatch metrics')?.quantity).toBe(11);
    expect(lineOf(bill, 'Lambda time, watch')?.dollars ?? 0).toBeCloseTo(4.38, 2);
    expect(lineOf(bill, 'DynamoDB reads, objects')?.quantity).toBeCloseTo(5_256_000, 0);
  });

  it('counts pods with a lifetime of one day, and their lists', () => {
    const bill = billOf(aMeasurement, { ...settings, podsPerNode: 10 }, PRICES);
    const livesAMonth = (100 * 10 * 730) / 24;
    expect(lineOf(bill, 'DynamoDB writes, objects')?.quantity).toBeCloseTo(100 * livesAMonth, 0);
    expect(lineOf(bill, 'HTTP API')?.quantity).toBeCloseTo(100 * (BEATS_PER_MONTH + 2 * 8_760) + 8 * livesAMonth, 0);
  });

  it('provisions for 70 % utilisation, and charges the alarms of autoscaling', () => {
    const control = { control: { readUnits: 60, writeUnits: 6 } };
    const idle = { ...aMeasurement.idle, taken: { ...idleTaken, tables: control } };
    const [fleet] = aMeasurement.fleets;
    const fleets = [{ ...fleet!, taken: { ...fleet!.taken, tables: { ...fleet!.taken.tables, ...control } } }];
    const bill = billOf({ ...aMeasurement, idle, fleets }, { ...settings, billing: 'provisioned' }, PRICES);
    // This table is on demand in each mode: 1 read and 0.1 writes per second.
    expect(lineOf(bill, 'DynamoDB reads, control')).toMatchObject({ quantity: 2_628_000, unit: 'read units' });
    expect(lineOf(bill, 'DynamoDB writes, control')).toMatchObject({ quantity: 262_800, unit: 'write units' });
    // 10.33 units per second at 70 %.
    expect(lineOf(bill, 'DynamoDB writes, health')).toMatchObject({ quantity: 15, unit: 'write capacity units' });
    expect(lineOf(bill, 'CloudWatch alarms')?.quantity).toBe(10 + 16);
  });

  it('estimates Lambda time from CPU on the share that memory buys, and a wait', () => {
    const bill = billOf(aMeasurement, { ...settings, lambdaTime: 'estimated' }, PRICES);
    const msEach = 1_769 / 256 + 5;
    expect(lineOf(bill, 'Lambda time, heartbeat')?.quantity).toBeCloseTo(
      (100 * BEATS_PER_MONTH * msEach * 0.25) / 1_000,
      -1,
    );
  });

  it('reports what a node adds, with and without data transfer out', () => {
    const each = { ...aMeasurement.each, statusPost: a({ answeredBytes: 1e6 }) };
    const report = billReport({ ...aMeasurement, each }, settings, PRICES);
    const dataOut = lineOf(report.bill, DATA_OUT)?.dollars ?? 0;
    expect(dataOut).toBeCloseTo(100 * 8.76 * 0.09, 2);
    expect(report.dollarsPerNode - report.dollarsPerNodeWithoutDataOut).toBeCloseTo(dataOut / 100, 4);
  });
});

describe('reads of a tick', () => {
  it('grow by whole pages of a segment', () => {
    expect(tickReadUnits(0, 200)).toBe(0);
    expect(tickReadUnits(20, 200)).toBe(0);
    expect(tickReadUnits(600, 200)).toBe(14.5);
    // Five segments of 108 pages.
    expect(tickReadUnits(10_000, 220)).toBe(269.5);
  });
});

describe('a recorded measurement', () => {
  it('can be read, and bills a node at well under one dollar', () => {
    const outcome = readMeasurement(recorded());
    if (outcome.kind !== 'measurement') throw new Error(outcome.faults.join());
    const { dollarsPerNode, idle } = billReport(
      outcome.measurement,
      { ...settings, nodes: 1_000, lambdaTime: 'estimated' },
      PRICES,
    );
    expect(dollarsPerNode).toBeGreaterThan(0.4);
    expect(dollarsPerNode).toBeLessThan(0.7);
    expect(idle.dollars).toBeGreaterThan(5);
    expect(idle.dollars).toBeLessThan(30);
  });

  it('with a wrong field is refused, with the name of the field', () => {
    const broken = recorded() as { idle: { seconds: unknown }; each: { statusPost: { httpRequests: unknown } } };
    broken.idle.seconds = 'long';
    broken.each.statusPost.httpRequests = -1;
    expect(readMeasurement(broken)).toEqual({
      kind: 'invalid',
      faults: [
        'idle.seconds: must be a number, 0 or more',
        'each.statusPost.httpRequests: must be a number, 0 or more',
      ],
    });
  });
});

describe('the parts of a bill', () => {
  it('are read from a template', () => {
    const resource = (Type: string, Properties: object = {}) => ({ Type, Properties });
    const Resources = {
      beat: resource('AWS::Lambda::Function', {
        MemorySize: 256,
        Environment: { Variables: { POWERTOOLS_SERVICE_NAME: 'heartbeat' } },
      }),
      queue: resource('AWS::Lambda::EventSourceMapping', { ScalingConfig: { MaximumConcurrency: 2 } }),
      unlimited: resource('AWS::Lambda::EventSourceMapping', { BatchSize: 1 }),
      stream: resource('AWS::Lambda::EventSourceMapping', { StartingPosition: 'TRIM_HORIZON' }),
      plain: resource('AWS::CloudWatch::Alarm', { MetricName: 'm' }),
      maths: resource('AWS::CloudWatch::Alarm', {
        Metrics: [{ Expression: 'a+b' }, { MetricStat: {} }, { MetricStat: {} }],
      }),
    };
    expect(standingOf({ Resources } as never)).toMatchObject({
      memoryMegabytes: { heartbeat: 256 },
      polledQueues: 2,
      limitedQueues: 1,
      alarmMetrics: 3,
      dashboards: 0,
    });
  });

  it('are metrics by name and dimensions', () => {
    const line = (zone: string) =>
      JSON.stringify({
        zone,
        _aws: { CloudWatchMetrics: [{ Namespace: 'N', Dimensions: [['zone']], Metrics: [{ Name: 'size' }] }] },
      });
    expect(seriesOf([line('a'), line('b'), line('a'), 'text'])).toEqual(new Set(['N size zone=a', 'N size zone=b']));
    expect(seriesOf([line('a')], (name) => name !== 'size')).toEqual(new Set());
  });

  it('add up by name', () => {
    const two = times(a({ messages: 1, functions: { f: { invocations: 1, billedMs: 2, cpuMs: 3 } } }), 2);
    expect(plus(two, two, -1)).toMatchObject({ messages: 0, functions: { f: { invocations: 0, billedMs: 0 } } });
  });
});

describe('the options', () => {
  it.each([
    [['--nodes', 'many'], '--nodes expects whole numbers from 0, not many'],
    [['--billing', 'free'], '--billing expects onDemand or provisioned, not free'],
    [['--beat', '0'], '--beat expects a number from 1, not 0'],
    [['--relay', 'many'], '--relay expects whole numbers from 0, not many'],
    [['--lunch'], "Unknown option '--lunch'"],
  ])('%j are refused with a message about the option', (args, message) => {
    expect(() => parseCostOptions(args)).toThrow(message);
  });
});
