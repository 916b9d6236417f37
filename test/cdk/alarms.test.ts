/**
 * Each alarm across its threshold and back. Our own metrics come from real log lines, those of AWS from the test
 * (`setMetric`).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { standingOf } from '../../bench/cost/standing.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { refusalsAdded } from '../../shared/access/refusal-store.ts';
import type { EventBus } from '../../shared/events/cluster-event.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { EvaluatedAlarms, type MetricId } from '../support/alarm-evaluator.ts';
import { NAMESPACE, watchedCluster } from '../support/watched-cluster.ts';
import { ofType, resourcesOf, synthesise } from './synthesised.ts';

const template = synthesise();
const cluster = (
  zones: Readonly<Record<string, number>> = { a: 4 },
  options: Parameters<typeof watchedCluster>[2] = {},
) => watchedCluster(template, zones, options);
const RUNBOOKS = 'docs/operations/alarms';

describe('a quiet cluster', () => {
  it('raises no alarm, and emits few metrics', async () => {
    const quiet = await cluster({ a: 3, b: 3 });
    await quiet.minutes(6);
    expect(quiet.alarms.all.filter(({ state }) => state !== 'OK').map(({ name }) => name)).toEqual([]);
    expect(quiet.pages()).toBe(false);
    expect(quiet.figures.names(NAMESPACE)).toEqual([
      'disrupted_zones',
      'heartbeats_received_share',
      'node_collector_unhealthy_nodes_in_zone',
      'node_collector_zone_health',
      'node_collector_zone_size',
      'not_ready_share_max',
      'tick_age_seconds',
    ]);
    // Twelve ticks: node-monitor's own line and one per zone, and the line of evictor's sweep.
    expect(quiet.lines()).toHaveLength(12 * (1 + 2) + 1);
  });

  it('names zone and reason in its lines, and never a node', async () => {
    const some = await cluster({ a: 3, b: 3 });
    await some.minutes(4, { beating: (name) => name !== 'a-0' });
    const dimensions = some.lines().flatMap((line) => {
      const { _aws: emf } = JSON.parse(line) as { _aws: { CloudWatchMetrics: { Dimensions: string[][] }[] } };
      return emf.CloudWatchMetrics.flatMap(({ Dimensions }) => Dimensions.flat());
    });
    expect(new Set(dimensions)).toEqual(new Set(['service', 'zone']));
    expect(some.lines().join()).not.toContain('a-0');
  });
});

describe('what pages', () => {
  it('is no function that has no work: one sweep per minute is a sign of life', async () => {
    const some = await cluster();
    await some.minutes(10);
    expect(some.lines().filter((line) => line.includes('tick_age_seconds') && line.includes('evictor'))).toHaveLength(
      1,
    );
    expect(some.alarming()).toEqual([]);
  });

  it.each(['node-monitor', 'evictor'] as const)('%s-ticks: no tick in two minutes', async (name) => {
    const some = await cluster();
    const others = (['node-monitor', 'evictor', 'cloud-node'] as const).filter((other) => other !== name);
    await some.minutes(5);
    await some.minutes(1, { ticking: others });
    expect(some.state(`${name}-ticks`)).toBe('OK');
    await some.minutes(2, { ticking: others });
    expect(some.state(`${name}-ticks`)).toBe('OK');
    await some.minute({ ticking: others });
    expect(some.alarming()).toContain(`${name}-ticks`);
    expect(some.pages()).toBe(true);
    await some.minute();
    expect(some.state(`${name}-ticks`)).toBe('OK');
    await some.minutes(2);
    expect(some.alarming()).toEqual([]);
    expect(some.pages()).toBe(false);
  });

  it('heartbeats-stopped: invocations of the heartbeat function (AWS metric)', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(5, { platform: { beats: 0 } });
    expect(some.alarming()).toEqual(['heartbeats-stopped']);
    expect(some.pages()).toBe(true);
    await some.minute();
    expect(some.state('heartbeats-stopped')).toBe('OK');
    await some.minutes(2);
    expect(some.alarming()).toEqual([]);
  });

  it('heartbeats-failing: errors and throttles of the heartbeat function (AWS metrics)', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(4, {}, () => some.setMetric('heartbeat', 'Errors', 2));
    expect(some.alarming()).toEqual([]);
    await some.minutes(3, {}, () => some.setMetric('heartbeat', 'Errors', 3));
    expect(some.alarming()).toEqual(['heartbeats-failing']);
    expect(some.pages()).toBe(true);
    await some.minutes(3);
    expect(some.alarming()).toEqual([]);
    // Throttled calls are no invocations. When all calls are throttled, there is no invocation.
    await some.minutes(3, { platform: { beats: 0 } }, () => some.setMetric('heartbeat', 'Throttles', 60));
    expect(some.alarming()).toContain('heartbeats-failing');
  });

  describe('heartbeats-missing: a fifth of the heartbeats of Ready nodes do not arrive', () => {
    /** Some of ten heartbeats of each node are lost, never two in a row. */
    const losing = (ofTen: number, intervalSeconds: (name: string) => number = () => 10) => ({
      beats: { intervalSeconds, arrives: (index: number, beat: number) => (beat * 3 + index + 1_000) % 10 >= ofTen },
    });
    const inZone = (zone: string) => ({ matchLabels: { 'topology.kubernetes.io/zone': zone } });

    it.each([
      ['a relay: a batch of 25 is one call', 'Relay', { a: 25 }, {}, () => 10],
      [
        'half of a fleet with a profile of 60 s',
        'Profile',
        { a: 10, b: 10 },
        {
          profiles: [
            {
              name: 'slow',
              nodeSelector: inZone('b'),
              beatIntervalSeconds: 60,
              leaseDurationSeconds: 200,
              nodeMonitorGracePeriodSeconds: 180,
            },
          ],
        },
        (name: string) => (name.startsWith('b') ? 60 : 10),
      ],
    ] as const)('with %s', async (_, kind, zones, policy, interval) => {
      const some = await cluster(zones, { policy });
      // Calls of the function: probes, and a batch each 10 s.
      const platform = kind === 'Relay' ? { platform: { beats: 18 } } : {};
      await some.minutes(10, { ...losing(0, interval), ...platform });
      expect(some.alarming()).toEqual([]);
      await some.minutes(6, { ...losing(1, interval), ...platform });
      expect(some.alarming()).toEqual([]);
      await some.minutes(6, { ...losing(4, interval), ...platform });
      expect(some.alarming()).toEqual(['heartbeats-missing']);
      expect(some.pages()).toBe(true);
      for (const name of some.names) expect(await some.fleet.ready(name)).toBe('True');
      await some.minutes(5, { ...losing(0, interval), ...platform });
      expect(some.alarming()).toEqual([]);
    });

    it('and not a third of the nodes that fail at once: they are marked, and then expected to send nothing', async () => {
      const some = await cluster({ a: 30 });
      await some.minutes(5);
      for (let minute = 0; minute < 10; minute += 1) {
        await some.minute({ beating: (name) => Number(name.split('-')[1]) >= 10 });
        expect(some.alarming()).not.toContain('heartbeats-missing');
      }
    });
  });

  it('refused-load: the HTTP API refuses a tenth of the requests that it may accept (AWS metric)', async () => {
    const some = await cluster();
    const busy = { platform: { requests: 100_000 } };
    const refusing = (count: number) => () => some.tellAs('refused-load', '4xx', count);
    await some.minutes(5);
    await some.minutes(5, busy, refusing(1_199));
    expect(some.alarming()).toEqual([]);
    await some.minutes(3, busy, refusing(1_200));
    expect(some.alarming()).toEqual(['refused-load']);
    expect(some.pages()).toBe(true);
    await some.minutes(3);
    expect(some.alarming()).toEqual([]);
  });

  it('evictions-held: the safety gate is closed because our own probes fail', async () => {
    let broken = false;
    const probe = {
      beat: async () =>
        broken ? ({ kind: 'failed', reason: 'answered 503' } as const) : ({ kind: 'accepted' } as const),
    };
    const some = await cluster({ a: 4 }, { probe });
    await some.minutes(5);
    broken = true;
    await some.minutes(1, { beating: () => false });
    expect(some.state('evictions-held')).toBe('OK');
    await some.minutes(3, { beating: () => false });
    // No heartbeat of the Ready nodes arrives.
    expect(some.alarming()).toEqual(['heartbeats-missing', 'evictions-held']);
    expect(some.pages()).toBe(true);
    for (const name of some.names) expect(await some.fleet.ready(name)).toBe('True');
    broken = false;
    await some.minutes(4);
    expect(some.alarming()).toEqual([]);
    expect(some.pages()).toBe(false);
    // Then the metric is no longer emitted: each hour in which it is emitted is billed.
    expect(some.lines().join()).toContain('gate_holding');
    await some.minutes(4);
    expect(some.lines().join()).not.toContain('gate_holding');
    expect(some.alarming()).toEqual([]);
  });

  it('evictions-held and total-disruption: each clears when its metric stops, while the page lasts', async () => {
    let broken = false;
    const probe = {
      beat: async () =>
        broken ? ({ kind: 'failed', reason: 'answered 503' } as const) : ({ kind: 'accepted' } as const),
    };
    for (const [alarm, silent] of [
      ['evictions-held', true],
      ['total-disruption', false],
    ] as const) {
      broken = false;
      const some = await cluster({ a: 4 }, { probe });
      await some.minutes(5);
      broken = silent;
      await some.minutes(4, { beating: () => false });
      expect(some.alarming()).toContain(alarm);
      // node-monitor stops with it. The metric that would end the condition is lost.
      for (let minute = 0; minute < 6; minute += 1) {
        await some.minute({ ticking: ['evictor', 'cloud-node'], beating: () => false });
        expect(some.pages()).toBe(true);
      }
      expect(some.alarming()).not.toContain(alarm);
      expect(some.alarming()).toContain('node-monitor-ticks');
    }
  });

  it('total-disruption: every node is unreachable while probes succeed', async () => {
    const some = await cluster({ a: 4, b: 4 });
    await some.minutes(5);
    await some.minutes(2, { beating: () => false });
    expect(some.alarming()).toContain('total-disruption');
    expect(some.pages()).toBe(true);
    for (const name of some.names) await some.fleet.post(name);
    await some.minutes(4);
    expect(some.alarming()).toEqual([]);
    expect(some.pages()).toBe(false);
    await some.minutes(5);
    expect(some.lines().join()).not.toContain('total_disruption');
    expect(some.alarming()).toEqual([]);
  });

  it('zone-disrupted: one zone of two is unreachable', async () => {
    const some = await cluster({ a: 4, b: 4 });
    const silent = { beating: (name: string) => name.startsWith('b') };
    await some.minutes(5);
    await some.minutes(3, silent);
    expect(some.alarming()).toContain('zone-disrupted');
    expect(some.alarming()).not.toContain('total-disruption');
    expect(some.pages()).toBe(true);
    for (const name of some.names) await some.fleet.post(name);
    await some.minute();
    expect(some.alarming()).toEqual([]);
    expect(some.pages()).toBe(false);
  });

  it('marks-late: age of the oldest part of a mass failure (AWS metric)', async () => {
    const some = await cluster();
    await some.minutes(3);
    const age = (seconds: number) => () => some.tellAs('marks-late', 'ApproximateAgeOfOldestMessage', seconds);
    await some.minutes(3, {}, age(60));
    expect(some.alarming()).toEqual([]);
    await some.minutes(2, {}, age(61));
    expect(some.alarming()).toEqual(['marks-late']);
    expect(some.pages()).toBe(true);
    await some.minutes(3, {}, age(0));
    expect(some.alarming()).toEqual([]);
  });

  it('api-errors: 5xx of the HTTP API (AWS metric)', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(3, {}, () => some.tellAs('api-errors', '5xx', 2));
    expect(some.alarming()).toEqual([]);
    await some.minutes(3, {}, () => some.tellAs('api-errors', '5xx', 3));
    expect(some.alarming()).toEqual(['api-errors']);
    expect(some.pages()).toBe(true);
    await some.minutes(3);
    expect(some.alarming()).toEqual([]);
  });
});

describe('alarms that do not page', () => {
  it('watches-failing: errors and throttles of the streaming function (AWS metrics)', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minute({});
    some.setMetric('watch', 'Errors', 1);
    some.setMetric('watch', 'Throttles', 1);
    await some.minutes(5);
    expect(some.alarming()).toEqual([]);
    some.setMetric('watch', 'Errors', 1);
    some.setMetric('watch', 'Throttles', 2);
    await some.minutes(5);
    expect(some.alarming()).toEqual(['watches-failing']);
    expect(some.pages()).toBe(false);
    await some.minutes(6);
    expect(some.alarming()).toEqual([]);
  });

  it('watches-not-streamed: watches are answered as long polls', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(5, {}, () => some.tellAs('watches-not-streamed', 'watches_as_long_polls', 1));
    expect(some.alarming()).toEqual(['watches-not-streamed']);
    expect(some.pages()).toBe(false);
    await some.minutes(20);
    expect(some.alarming()).toEqual([]);
  });

  it('requests-refused: 4xx of the HTTP API (AWS metric), where its throttling with 429 is counted', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(5, {}, () => some.tellAs('requests-refused', '4xx', 2));
    expect(some.alarming()).toEqual([]);
    await some.minutes(3, {}, () => some.tellAs('requests-refused', '4xx', 3));
    expect(some.alarming()).toEqual(['requests-refused']);
    expect(some.pages()).toBe(false);
    await some.minutes(3);
    expect(some.alarming()).toEqual([]);
  });

  it('not-ready-share: a third of a zone is unreachable, which does not disrupt it', async () => {
    const some = await cluster({ a: 9, b: 9 });
    const silent = (count: number) => ({ beating: (name: string) => Number(name.split('-')[1]) >= count });
    await some.minutes(5);
    await some.minutes(6, silent(2));
    expect(some.alarming()).toEqual([]);
    await some.minutes(4, silent(3));
    expect(some.alarming()).toEqual(['not-ready-share']);
    expect(some.pages()).toBe(false);
    await some.fleet.post('a-2');
    await some.fleet.post('b-2');
    await some.minute(silent(2));
    expect(some.alarming()).toEqual([]);
  });

  it('eviction-queue-age: evictions of a small zone in partial disruption stop, and its nodes wait', async () => {
    const some = await cluster({ a: 5, b: 1 });
    const silent = { beating: (name: string) => name === 'a-0' || name === 'b-0' || name === 'a-1' };
    await some.minutes(5);
    await some.minutes(31, silent);
    expect(some.alarming()).not.toContain('eviction-queue-age');
    await some.minutes(4, silent);
    expect(some.alarming()).toContain('eviction-queue-age');
    for (const name of some.names) await some.fleet.post(name);
    // A missing metric clears the alarm when the last value has left the evaluated periods.
    await some.minutes(5);
    expect(some.alarming()).toEqual([]);
  });

  it('pods-pending: no node has room for a pod', async () => {
    const some = await cluster();
    const all = { ticking: ['node-monitor', 'evictor', 'cloud-node', 'scheduler'] } as const;
    await some.minutes(5, all);
    await some.fleet.addPod('p', '');
    await some.minutes(5, all);
    expect(some.alarming()).toEqual([]);
    await some.minutes(1, all);
    expect(some.alarming()).toEqual(['pods-pending']);
    expect(some.pages()).toBe(false);
    await some.fleet.removePod('p');
    await some.minutes(11, all);
    expect(some.alarming()).toEqual([]);
    const alarms = ofType(synthesise({ policy: { pendingPodAlarmSeconds: 90 } }), 'AWS::CloudWatch::Alarm');
    const pending = alarms.find(([, { Properties }]) => Properties['AlarmName'] === 'nodekeeper-pods-pending');
    expect(pending?.[1].Properties['Threshold']).toBe(90);
  });

  it('workload-short-of-pods: no node has room for the pods of a Deployment', async () => {
    const some = await cluster();
    const all = { ticking: ['node-monitor', 'evictor', 'cloud-node', 'workloads'] } as const;
    await some.minutes(2, all);
    const ref = { resource: 'deployments', namespace: 'default', name: 'web' };
    const metadata = { name: 'web', namespace: 'default', uid: 'web', generation: 1 };
    const selector = { matchLabels: { app: 'web' } };
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const { objects } = some.fleet;
    await objects.commit({
      writes: [{ kind: 'create', ref, object: { metadata, spec: { replicas: 1, selector, template } } }],
    });
    await some.minutes(40, all);
    expect(some.alarming()).toEqual([]);
    await some.minutes(6, all);
    expect(some.alarming()).toEqual(['workload-short-of-pods']);
    expect(some.pages()).toBe(false);
    const previous = await objects.get(ref);
    await objects.commit({ writes: [{ kind: 'delete', ref, previous: previous! }] });
    await some.minutes(32, all);
    expect(some.alarming()).toEqual([]);
  });

  it('background-ticks: invocations of cloud-node, pod-gc, scheduler and workloads (AWS metrics)', async () => {
    const some = await cluster();
    await some.minutes(5);
    await some.minutes(4, { platform: { podGcCalls: 0 } });
    expect(some.alarming()).toEqual([]);
    await some.minute({ platform: { podGcCalls: 0 } });
    expect(some.alarming()).toEqual(['background-ticks']);
    await some.minute();
    expect(some.alarming()).toEqual([]);
    await some.minutes(5, { platform: { cloudNodeCalls: 0 } });
    expect(some.alarming()).toEqual(['background-ticks']);
    await some.minute();
    await some.minutes(5, { platform: { schedulerCalls: 0 } });
    expect(some.alarming()).toEqual(['background-ticks']);
    await some.minute();
    await some.minutes(5, { platform: { workloadsCalls: 0 } });
    expect(some.alarming()).toEqual(['background-ticks']);
    expect(some.pages()).toBe(false);
  });

  it('cloud-answers-failing: EC2 throttles every request about a node that is not Ready', async () => {
    const some = await cluster({ a: 9 }, { hasCloud: true });
    const { fleet } = some;
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      spec: { ...node.spec, providerID: 'aws:///eu-central-1a/i-0123456789abcdef0' },
    }));
    fleet.cloud.put({
      instanceId: 'i-0123456789abcdef0',
      zone: 'eu-central-1a',
      instanceType: 'm5.large',
      launchedAtMs: fleet.nowMs(),
      addresses: [],
    });
    await fleet.streams();
    const silent = { beating: (name: string) => name !== 'a-0' };
    await some.minutes(5, silent);
    expect(some.alarming()).toEqual([]);
    fleet.cloud.fail('RequestLimitExceeded');
    await some.minutes(4, silent);
    expect(some.alarming()).toEqual([]);
    await some.minute(silent);
    expect(some.alarming()).toEqual(['cloud-answers-failing']);
    expect(some.pages()).toBe(false);
    fleet.cloud.fail(null);
    await some.minutes(3, silent);
    expect(some.alarming()).toEqual([]);
  });

  it('dead-letters: depth of the one queue of all sources (AWS metric)', async () => {
    const some = await cluster();
    await some.minutes(3);
    const depth = (value: number) => () => some.tellAs('dead-letters', 'ApproximateNumberOfMessagesVisible', value);
    expect(some.alarms.alarm('nodekeeper-dead-letters').metricCount).toBe(1);
    await some.minutes(1, {}, depth(1));
    expect(some.alarming()).toEqual(['dead-letters']);
    await some.minutes(1, {}, depth(0));
    expect(some.alarming()).toEqual([]);
  });

  it('stream-age: IteratorAge of both streams (AWS metric)', async () => {
    const some = await cluster();
    await some.minutes(3);
    for (const name of ['health-stream', 'object-stream'] as const) {
      await some.minutes(2, {}, () => some.setMetric(name, 'IteratorAge', 60_000));
      expect(some.alarming()).toEqual([]);
      await some.minutes(2, {}, () => some.setMetric(name, 'IteratorAge', 60_001));
      expect(some.alarming()).toEqual(['stream-age']);
      await some.minutes(2);
      expect(some.alarming()).toEqual([]);
    }
  });

  it('throttled-keys: writes of any table, reads of health and control (AWS metrics)', async () => {
    const some = await cluster();
    await some.minutes(5);
    for (const [metric, tables] of [
      ['ReadThrottleEvents', [0, 1]],
      ['WriteThrottleEvents', [0, 1, 2]],
    ] as const) {
      for (const table of tables) {
        await some.minutes(2, {}, () => some.tellAs('throttled-keys', metric, 1, table));
        expect(some.alarming()).toEqual([]);
        await some.minutes(1, {}, () => some.tellAs('throttled-keys', metric, 1, table));
        expect(some.alarming()).toEqual(['throttled-keys']);
        // DynamoDB then sends no metric, and the alarm clears nevertheless.
        await some.minutes(5);
        expect(some.alarming()).toEqual([]);
      }
    }
  });

  it('api-latency: the slowest of twenty (AWS metric), with a higher threshold for long polls', async () => {
    const some = await cluster();
    await some.minutes(5, {}, () => some.tellAs('api-latency', 'Latency', 3_000));
    expect(some.alarming()).toEqual([]);
    await some.minutes(5, {}, () => some.tellAs('api-latency', 'Latency', 3_001));
    expect(some.alarming()).toEqual(['api-latency']);
    await some.minute();
    await some.minutes(1, {}, () => some.tellAs('api-latency', 'Latency', 20));
    expect(some.alarming()).toEqual([]);
    const polling = ofType(synthesise({ policy: { watchMode: 'longPoll' } }), 'AWS::CloudWatch::Alarm');
    const latency = polling.find(([, { Properties }]) => Properties['AlarmName'] === 'nodekeeper-api-latency');
    expect(latency?.[1].Properties['Threshold']).toBe(25_000);
  });

  it('function-errors: ticks that fail because the tables do, and errors of functions (AWS metric)', async () => {
    let broken = false;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      query: async (...of) => {
        if (broken) throw new StoreFault('unreachable', 'no answer', { retryable: true });
        return items.query(...of);
      },
    });
    const some = await cluster({ a: 3 }, { between });
    await some.minutes(5);
    broken = true;
    await some.minute();
    broken = false;
    await some.minutes(4);
    expect(some.alarming()).toEqual(['function-errors']);
    expect(some.pages()).toBe(false);
    await some.minutes(15);
    expect(some.alarming()).toEqual([]);
    some.setMetric('pod-gc', 'Errors', 2);
    await some.minutes(5);
    expect(some.alarming()).toEqual([]);
    for (const name of ['pod-gc', 'cloud-node'] as const) {
      some.setMetric(name, 'Errors', 3);
      await some.minutes(5);
      expect(some.alarming()).toEqual(['function-errors']);
      await some.minutes(15);
      expect(some.alarming()).toEqual([]);
    }
  });

  it('identity-over-limit: a node is refused for minutes', async () => {
    const some = await cluster({ a: 4 });
    const { fleet } = some;
    const refuse = () =>
      refusalsAdded(fleet.tables)({ kind: 'node', username: 'system:node:a-0', over: 'time', count: 9 }, fleet.nowMs());
    await some.minutes(5);
    await refuse();
    await some.minutes(4);
    expect(some.alarming()).toEqual([]);
    for (let minute = 0; minute < 5; minute += 1) {
      await refuse();
      await some.minute();
    }
    expect(some.alarming()).toEqual(['identity-over-limit']);
    expect(some.pages()).toBe(false);
    await some.minutes(5);
    expect(some.alarming()).toEqual([]);
  });

  it('objects-not-written: a silent Node is too large to be marked', async () => {
    const some = await cluster({ a: 9 });
    const { fleet } = some;
    const length = JSON.stringify(await fleet.node('a-0')).length;
    const annotations = { 'example.com/large': 'x'.repeat(119_900 - length) };
    await some.minutes(5);
    await fleet.changeNode('a-0', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
    await some.minutes(3);
    expect(some.alarming()).toEqual([]);
    await some.minutes(5, { beating: (name) => name !== 'a-0' });
    expect(some.alarming()).toEqual(['objects-not-written']);
    expect(some.pages()).toBe(false);
    await fleet.changeNode('a-0', ({ metadata: { annotations: _, ...metadata }, ...node }) => ({ ...node, metadata }));
    await some.minutes(20);
    expect(some.alarming()).toEqual([]);
  });

  it('stream-records-dropped: a stored Node that no function can read', async () => {
    const some = await cluster({ a: 9 });
    const key = { pk: 'o#nodes#0', sk: 'a-0' };
    await some.minutes(5);
    // Published with the next call of object-stream.
    const newImage = { ...key, k: 'Node', n: 'a-0', rv: 1, o: '{' };
    expect(await some.fleet.controllers.onObjectRecords([{ type: 'MODIFY', key, newImage }])).toMatchObject({
      faults: [expect.any(SyntaxError)],
    });
    await some.minutes(5);
    expect(some.alarming()).toEqual(['stream-records-dropped']);
    expect(some.pages()).toBe(false);
    await some.minutes(20);
    expect(some.alarming()).toEqual([]);
  });

  it('events-not-sent: the event bus rejects every event', async () => {
    let broken = false;
    const eventBus: EventBus = {
      publish: async (events) => (broken ? { failed: events, reason: 'no answer' } : { failed: [] }),
    };
    const some = await cluster({ a: 9 }, { eventBus });
    await some.minutes(5);
    broken = true;
    await some.minutes(2, { beating: (name) => name !== 'a-0' });
    broken = false;
    await some.fleet.post('a-0');
    await some.minutes(3);
    expect(some.alarming()).toEqual(['events-not-sent']);
    expect(some.pages()).toBe(false);
    await some.minutes(14);
    expect(some.alarming()).toEqual(['events-not-sent']);
    await some.minute();
    expect(some.alarming()).toEqual([]);
  });
});

/** Metrics of AWS by namespace: their dimension, and the resource that it names. Source: the guides of the services. */
const OF_AWS = {
  'AWS/ApiGateway': ['ApiId', 'AWS::ApiGatewayV2::Api', '4xx 5xx Count Latency'],
  'AWS/DynamoDB': ['TableName', 'AWS::DynamoDB::Table', 'ReadThrottleEvents WriteThrottleEvents'],
  'AWS/Lambda': ['FunctionName', 'AWS::Lambda::Function', 'Errors Invocations IteratorAge Throttles'],
  'AWS/SQS': ['QueueName', 'AWS::SQS::Queue', 'ApproximateAgeOfOldestMessage ApproximateNumberOfMessagesVisible'],
} as const;

describe('alarms', () => {
  const alarms = new EvaluatedAlarms(template);

  it('read metrics of AWS under the namespace and the dimension that AWS has, of a resource of the cluster', () => {
    const read = alarms.all.flatMap(({ metrics }) => metrics).filter(({ namespace }) => namespace !== NAMESPACE);
    expect(new Set(read.map(({ namespace }) => namespace))).toEqual(new Set(Object.keys(OF_AWS)));
    for (const { namespace, name, dimensions } of read) {
      const [dimension, type, names] = OF_AWS[namespace as keyof typeof OF_AWS];
      expect(names.split(' ')).toContain(name);
      expect(Object.keys(dimensions)).toEqual([dimension]);
      const [, id = ''] = /^<(\w+)(?:\.QueueName)?>$/.exec(dimensions[dimension] ?? '') ?? [];
      expect([id, resourcesOf(template)[id]?.Type]).toEqual([id, type]);
    }
    const queueOf = (alarm: string) => alarms.alarm(`nodekeeper-${alarm}`).metrics[0]?.dimensions['QueueName'];
    expect([queueOf('marks-late'), queueOf('dead-letters')]).toEqual([
      expect.stringContaining('NodeMarkerParts'),
      expect.stringContaining('DeadLetters'),
    ]);
  });

  it('page by one composite alarm, over the alarms which mean that nodes are not monitored', () => {
    expect(alarms.partsOf('nodekeeper-page').map((name) => name.replace('nodekeeper-', ''))).toEqual([
      'node-monitor-ticks',
      'evictor-ticks',
      'heartbeats-stopped',
      'heartbeats-failing',
      'heartbeats-missing',
      'marks-late',
      'evictions-held',
      'total-disruption',
      'zone-disrupted',
      'api-errors',
      'refused-load',
    ]);
    const text = readFileSync(join(repositoryRoot, RUNBOOKS, 'page.md'), 'utf8');
    for (const name of alarms.partsOf('nodekeeper-page')) {
      const short = name.replace('nodekeeper-', '');
      expect(text).toContain(`[${short}](${short}.md)`);
    }
  });

  it('notify a topic only where one is configured, by the composite alarm only', () => {
    const actions = (of: ReturnType<typeof synthesise>) =>
      ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm'].flatMap((type) =>
        ofType(of, type).flatMap(([, { Properties }]) => [Properties['AlarmActions'], Properties['OKActions']]),
      );
    expect(actions(template).filter((each) => each !== undefined)).toEqual([]);
    const alarmTopicArn = 'arn:aws:sns:eu-central-1:111122223333:oncall';
    expect(actions(synthesise({ alarmTopicArn })).filter((each) => each !== undefined)).toEqual([
      [alarmTopicArn],
      [alarmTopicArn],
    ]);
  });

  it('each have a runbook, and each runbook has an alarm; the description contains its path', () => {
    const short = alarms.names.map((name) => name.replace(/^nodekeeper-/, '')).sort();
    const files = readdirSync(join(repositoryRoot, RUNBOOKS)).filter((file) => file !== 'README.md');
    expect(files.map((file) => file.replace(/\.md$/, '')).sort()).toEqual(short);
    for (const [name, description] of alarms.descriptions) {
      const path = `${RUNBOOKS}/${name.replace(/^nodekeeper-/, '')}.md`;
      expect(description.endsWith(` Runbook: ${path}`)).toBe(true);
    }
    const runbookBaseUrl = 'https://example.org/blob/main';
    for (const description of new EvaluatedAlarms(synthesise({ runbookBaseUrl })).descriptions.values()) {
      expect(description).toContain(` Runbook: ${runbookBaseUrl}/${RUNBOOKS}/`);
    }
  });

  it('each have a runbook with meaning, withheld actions, diagnosis, remedy, and when the alarm clears', () => {
    const headings = ['## What it means', '## What was not done', '## Look', '## Do', '## It clears'];
    for (const name of alarms.names) {
      const text = readFileSync(join(repositoryRoot, RUNBOOKS, `${name.replace(/^nodekeeper-/, '')}.md`), 'utf8');
      for (const heading of headings) expect(`${name}: ${text}`).toContain(`\n${heading}\n`);
    }
  });

  it('clear only when their last value has left three periods, where a metric is emitted only with something wrong', () => {
    const late = alarms.all.filter(({ periodMs, metricCount }) => periodMs === 300_000 && metricCount === 1);
    expect(late.map(({ name }) => name)).toContain('nodekeeper-events-not-sent');
    for (const { name } of late) {
      const text = readFileSync(join(repositoryRoot, RUNBOOKS, `${name.replace(/^nodekeeper-/, '')}.md`), 'utf8');
      expect(`${name}: ${text}`).toMatch(/\n## It clears\n\nSome 15 minutes after the last /);
    }
  });

  it('cost what their overview states, and have at most ten metrics each', () => {
    const metrics = alarms.all.map(({ metricCount }) => metricCount);
    expect(Math.max(...metrics)).toBeLessThanOrEqual(10);
    const dollars = metrics.reduce((sum, count) => sum + count, 0) * 0.1 + alarms.compositeCount * 0.5;
    expect(readFileSync(join(repositoryRoot, RUNBOOKS, 'README.md'), 'utf8')).toContain(
      `**$${dollars.toFixed(2)} per month**`,
    );
  });
});

/** What the graphs of our own metrics read: one series, or all with these dimensions. Their values are null then. */
function dashboardSeries(): Omit<MetricId, 'namespace'>[] {
  const [dashboard, ...others] = ofType(template, 'AWS::CloudWatch::Dashboard');
  expect(others).toEqual([]);
  const { 'Fn::Join': join } = dashboard![1].Properties['DashboardBody'] as { 'Fn::Join': [string, unknown[]] };
  const body = join[1].map((part) => (typeof part === 'string' ? part : '')).join('');
  const { widgets } = JSON.parse(body) as { widgets: { properties: { metrics?: unknown[][] } }[] };
  return widgets
    .flatMap(({ properties }) => properties.metrics ?? [])
    .flatMap((row) => {
      const [namespace, name, dimension, value] = row as string[];
      if (namespace === NAMESPACE) return [{ name: name!, dimensions: { [dimension!]: value! } }];
      const { expression } = row[0] as { expression?: string };
      if (expression?.startsWith("SEARCH('{") !== true) return [];
      const found = /^SEARCH\('\{"Nodekeeper\/nodekeeper",([a-z,]+)\} MetricName="(\w+)"', '\w+'\)$/.exec(expression);
      const dimensions = Object.fromEntries(found![1]!.split(',').map((each) => [each, null as never]));
      return [{ name: found![2]!, dimensions }];
    });
}

describe('the dashboard', () => {
  it('shows every series of its metrics that functions emit, and no other', async () => {
    let broken = false;
    const probe = {
      beat: async () =>
        broken ? ({ kind: 'failed', reason: 'answered 503' } as const) : ({ kind: 'accepted' } as const),
    };
    const policy = { nodesMarkedPerTickMax: 2 };
    const some = await cluster({ a: 5, b: 4 }, { hasCloud: true, probe, policy });
    const { fleet, figures } = some;
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      spec: { ...node.spec, providerID: 'aws:///eu-central-1a/i-0123456789abcdef0' },
    }));
    await fleet.addPod('p', 'a-1', { tolerations: [] });
    await some.minutes(3, { beating: (name) => name !== 'b-0' });
    // A zone at once: node-marker marks it. Then all, then with a closed gate.
    await some.minutes(3, { beating: (name) => name.startsWith('b') });
    await some.minutes(2, { beating: () => false });
    // EC2 does not know the instance of a-0, so its Node is deleted.
    const remaining = some.names.slice(1);
    for (const name of remaining) await fleet.post(name);
    await some.minute({ beating: (name) => remaining.includes(name) });
    broken = true;
    await some.minutes(2, { beating: () => false });

    const shown = dashboardSeries();
    const emitted = figures.ids(NAMESPACE);
    const shows = (graph: (typeof shown)[number], { name, dimensions }: MetricId): boolean =>
      graph.name === name &&
      Object.keys(graph.dimensions).length === Object.keys(dimensions).length &&
      Object.entries(graph.dimensions).every(
        ([key, value]) => key in dimensions && [null, dimensions[key]].includes(value),
      );
    expect(shown.filter((graph) => !emitted.some((id) => shows(graph, id)))).toEqual([]);
    const names = new Set(shown.map(({ name }) => name));
    expect(emitted.filter((id) => names.has(id.name) && !shown.some((graph) => shows(graph, id)))).toEqual([]);
    // Of Lambda, and one that is emitted four times per day (functions/node-monitor/report-tick.test.ts).
    const text = JSON.stringify(ofType(template, 'AWS::CloudWatch::Dashboard'));
    for (const metric of ['beats / PERIOD(beats)', 'cost_dollars_per_day']) expect(text).toContain(metric);
    template.hasOutput('DashboardUrl', {});
  });

  it('is left out with dashboard: false, and every alarm stays', () => {
    const without = synthesise({ dashboard: false });
    expect(ofType(without, 'AWS::CloudWatch::Dashboard')).toEqual([]);
    expect(without.findOutputs('DashboardUrl')).toEqual({});
    for (const type of ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm']) {
      expect(ofType(without, type)).toHaveLength(ofType(template, type).length);
    }
  });
});

it('the recorded run of the bill has the alarms, queues and functions of this template', () => {
  const file = join(repositoryRoot, 'bench/cost/measurement.json');
  const { standing } = JSON.parse(readFileSync(file, 'utf8')) as { standing: unknown };
  expect(standing).toEqual(standingOf(template.toJSON() as never));
});
