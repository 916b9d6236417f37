/**
 * Calls to EC2 per hour while many nodes stay not Ready and their instances run: the load of cloud-node on the
 * account's DescribeInstances bucket (100 tokens, refilled with 20 per second by default), and the polling interval of
 * a node. An instance that is missing from an answer costs one more call, at most 20 per tick in all; here none is
 * missing.
 */
import { memoryCloud } from '../shared/adapters/memory/cloud.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { clusterObjects } from '../shared/api/storage/cluster-objects.ts';
import { watchedNodeOf } from '../shared/controllers/cloud-node/maintain-watch-list.ts';
import { cloudStore } from '../shared/controllers/cloud-node/watch-list-store.ts';
import { inParts } from '../shared/controllers/framework/bounded-work.ts';
import { nodeRef } from '../shared/controllers/framework/change-node.ts';
import { fleetControllers } from '../shared/controllers/index.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import { formatTime } from '../shared/kube/time.ts';
import type { KubeNode } from '../shared/kube/types.ts';
import { COMMIT_OBJECTS_MAX } from '../shared/store/object-store.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import { type Benchmark, rounded } from './benchmark.ts';

const NODES = [10, 1_000, 10_000];
/** Ticks measured, after those in which the answers are new. */
const TICKS = 60;
const TICKS_BEFORE = 12;
const HOUR_SECONDS = 3_600;

export const ec2Calls: Benchmark = {
  name: 'ec2-calls',
  about: 'calls to EC2 an hour with 10, 1,000 and 10,000 nodes that stay not ready',
  async run(report) {
    for (const nodes of NODES) report(await measure(nodes));
  },
};

async function measure(nodes: number) {
  const periodSeconds = defaultPolicy.nodeMonitorPeriodSeconds;
  const random = seededFraction(nodes);
  const source = { fraction: random, uuid: () => seededUuid(random) };
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { nowMs: () => nowMs };
  let readUnits = 0;
  let writeUnits = 0;
  const items = memoryItemStore({
    onConsumed: (units) => {
      readUnits += units.readUnits;
      writeUnits += units.writeUnits;
    },
  });
  const cloud = memoryCloud({ clock, region: 'us-east-1', accountId: '123456789012' });
  const nobody = (): void => {};
  const controllers = fleetControllers({
    items,
    clock,
    random: source,
    policy: defaultPolicy,
    log: { debug: nobody, info: nobody, warn: nobody, error: nobody },
    meter: { add: nobody },
    cloud,
  });
  const objects = clusterObjects({ items, clock, random: source });
  const list = cloudStore(items);
  const launchedAtMs = nowMs - 3_600_000;
  const silent = Array.from({ length: nodes }, (_, index): KubeNode => {
    const instanceId = `i-${String(index).padStart(17, '0')}`;
    cloud.put({ instanceId, zone: 'us-east-1a', instanceType: 'm5.large', launchedAtMs });
    const creationTimestamp = formatTime(launchedAtMs);
    return {
      metadata: { name: `vm-${index}`, uid: seededUuid(random), creationTimestamp },
      spec: { providerID: `aws:///us-east-1a/${instanceId}` },
      status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
    };
  });
  for (const part of inParts(silent, COMMIT_OBJECTS_MAX)) {
    const writes = part.map(
      (object) => ({ kind: 'create', ref: nodeRef(object.metadata.name ?? ''), object }) as const,
    );
    const outcome = await objects.commit({ writes });
    if (outcome.kind !== 'committed') throw new Error(`nodes could not be made: ${outcome.kind}`);
  }
  for (const node of silent) await list.watch(watchedNodeOf(node), 1);
  let looked = 0;
  let callsBefore = 0;
  let worstTickCalls = 0;
  let tookMs = 0;
  for (let tick = 0; tick < TICKS_BEFORE + TICKS; tick += 1) {
    if (tick === TICKS_BEFORE) {
      callsBefore = cloud.calls().describeInstances;
      readUnits = 0;
      writeUnits = 0;
    }
    nowMs += periodSeconds * 1_000;
    const calls = cloud.calls().describeInstances;
    const startedMs = performance.now();
    const outcome = await controllers.tickCloudNode(slotOf(nowMs, periodSeconds));
    worstTickCalls = Math.max(worstTickCalls, cloud.calls().describeInstances - calls);
    if (tick < TICKS_BEFORE || outcome.kind !== 'ran') continue;
    tookMs += performance.now() - startedMs;
    looked += outcome.processed;
  }
  const perTick = (cloud.calls().describeInstances - callsBefore) / TICKS;
  return {
    nodes,
    callsPerHour: Math.round((perTick * HOUR_SECONDS) / periodSeconds),
    callsPerSecond: rounded(perTick / periodSeconds),
    callsWorstTick: worstTickCalls,
    pollPeriodSeconds: rounded((nodes * TICKS * periodSeconds) / looked),
    readUnitsPerTick: rounded(readUnits / TICKS),
    writeUnitsPerTick: rounded(writeUnits / TICKS),
    tickMs: rounded(tookMs / TICKS),
  };
}
