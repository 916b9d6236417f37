/** The output of the bundled functions in local mode: events that match their schemas, metrics that the alarms need. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { synthesise } from '../cdk/synthesised.ts';
import { EvaluatedAlarms, MetricFigures } from '../support/alarm-evaluator.ts';
import { eventFaults } from '../support/event-schemas.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

/** Emitted even when nothing happens, so they must exist after a short run. */
const ALWAYS = [
  'disrupted_zones',
  'heartbeats_received_share',
  'node_collector_unhealthy_nodes_in_zone',
  'node_collector_zone_size',
  'not_ready_share_max',
  'tick_age_seconds',
];
const NAMESPACE = 'Nodekeeper/nodekeeper';

describe('the output of local mode', { timeout: 180_000 }, () => {
  let local: LocalForTest;
  const linesOf = (name: string): string[] => {
    const file = join(local.dataDir, name);
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  };
  const events = () => linesOf('events.jsonl').map((line) => JSON.parse(line) as Record<string, unknown>);
  const ofType = (type: string) => events().filter((event) => event['detail-type'] === type);

  beforeAll(async () => {
    local = await startLocalForTest({
      home: 'aws',
      nodes: 3,
      policy: {
        beatIntervalSeconds: 5,
        leaseDurationSeconds: 15,
        nodeMonitorGracePeriodSeconds: 10,
        nodeStartupGracePeriodSeconds: 10,
      },
    });
  }, 120_000);
  afterAll(() => local?.stop());

  it('is an event when a node becomes Ready, becomes unreachable and is deleted, each in the documented form', async () => {
    await until(() => ofType('NodeReady').length >= 3, { withinMs: 30_000, what: 'three ready nodes' });
    const [first] = ofType('NodeReady') as { readonly detail: { readonly node: { readonly name: string } } }[];
    const { name } = first!.detail.node;
    await local.fleet('silence', name);
    await until(() => ofType('NodeNotReady').length > 0, { withinMs: 100_000, what: 'a silent node' });
    await local.client.send({ method: 'DELETE', path: `/api/v1/nodes/${name}` });
    await until(() => ofType('NodeDeleted').length > 0, { withinMs: 30_000, what: 'a deleted node' });
    expect(ofType('NodeNotReady')).toMatchObject([
      { source: 'nodekeeper', detail: { node: { name }, ready: 'Unknown' } },
    ]);
    for (const event of events()) expect(eventFaults(event)).toEqual([]);
  });

  it('is every permanent metric, in lines with the names and dimensions of the alarms', async () => {
    const figures = new MetricFigures();
    const isTold = (...words: string[]) =>
      linesOf('metrics.jsonl').some((line) => words.every((word) => line.includes(word)));
    // The age of ticks is emitted twice per minute.
    await until(
      () =>
        isTold('detection_seconds') &&
        // A zone has metrics once it is one minute old.
        isTold('node_collector_zone_size') &&
        ['node-monitor', 'evictor'].every((service) => isTold('tick_age_seconds', `"${service}"`)),
      { withinMs: 150_000, what: 'metrics on the disk' },
    );
    const nowMs = Date.now();
    for (const line of linesOf('metrics.jsonl')) figures.addLine(line, nowMs);
    expect(figures.names(NAMESPACE)).toEqual(expect.arrayContaining([...ALWAYS, 'detection_seconds']));
    const alarms = new EvaluatedAlarms(synthesise());
    for (const name of ['node-monitor-ticks', 'evictor-ticks', 'zone-disrupted']) {
      for (const id of alarms.alarm(`nodekeeper-${name}`).metrics) {
        expect([name, figures.statistic(id, 'SampleCount', nowMs, 1)]).not.toEqual([name, undefined]);
      }
    }
  });
});
