/** Pods of DaemonSets on nodes with a taint of ours that prevents new pods: through API, controller and scheduler. */
import { beforeEach, describe, expect, it } from 'vitest';
import { passesWorkloadFilter } from '../../../server/changes/change-filters.ts';
import { fleetStore } from '../../../shared/fleet/fleet-store.ts';
import { PLANNED_UNTIL_ANNOTATION } from '../../../shared/fleet/nodes/planned-silence.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { rfc3339 } from '../../../shared/kubernetes/rfc3339.ts';
import { MERGE, podsIn } from '../../../test/support/api-in-memory.ts';
import { ScheduledCluster } from '../../../test/support/scheduled-cluster.ts';

const DAEMON_SETS = '/apis/apps/v1/namespaces/default/daemonsets';

const ROUNDS_MAX = 100;

let cluster: ScheduledCluster;
let seen: number;
beforeEach(async () => {
  seen = 0;
  cluster = new ScheduledCluster();
  await cluster.node('flapping', { taints: [{ key: 'nodekeeper.dev/flapping', effect: 'NoSchedule' }] });
  await cluster.node('asleep');
  const until = rfc3339(cluster.fleet.nowMs() + 600_000);
  await cluster.patchNode('asleep', { metadata: { annotations: { [PLANNED_UNTIL_ANNOTATION]: until } } });
  await cluster.node('closed', { taints: [{ key: 'example.com/own', effect: 'NoSchedule' }] });
  await settle();
});

/** Records of the stream for the workload controllers, and passes of the scheduler, until both rest. */
async function settle(): Promise<void> {
  const { tables, controllers } = cluster.fleet;
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
    // A tick of node-monitor finishes: the gate is open.
    await fleetStore(tables).finish(cluster.fleet.nowMs());
    const changes = tables.changes('objects', seen);
    if (changes.length === 0) return;
    seen = changes.at(-1)!.sequence;
    const { faults, postponed } = await controllers.onWorkloadRecords(changes.filter(passesWorkloadFilter));
    expect([...faults, ...postponed]).toEqual([]);
    await cluster.settle();
    await cluster.tick();
  }
  throw new Error('the controllers do not come to rest');
}

async function pods(): Promise<readonly KubePod[]> {
  const { items } = (await cluster.send('GET', podsIn('default'))) as unknown as { items: KubePod[] };
  return items;
}

const boundTo = async (): Promise<readonly string[]> =>
  (await pods()).map(({ spec }) => spec?.nodeName ?? 'no node').sort();

async function createDaemonSet(): Promise<void> {
  const labels = { app: 'agent' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'v1' }] } };
  const body = { metadata: { name: 'agent' }, spec: { selector: { matchLabels: labels }, template } };
  await cluster.send('POST', DAEMON_SETS, { body });
  await settle();
}

describe('a DaemonSet', () => {
  it('has a pod on a flapping node, and on one with planned silence', async () => {
    expect((await cluster.storedNode('asleep')).spec?.taints).toEqual([
      { key: 'nodekeeper.dev/planned-silence', effect: 'NoSchedule' },
    ]);
    await createDaemonSet();
    expect(await boundTo()).toEqual(['asleep', 'flapping']);
  });

  it('has its other pods nowhere near them: a pod without an owner waits', async () => {
    await cluster.pod('plain');
    await settle();
    expect(await cluster.nodeOf('plain')).toBe('');
  });

  it('replaces its pods there after a change of its template', async () => {
    await createDaemonSet();
    for (const { metadata } of await pods()) {
      const ready = { type: 'Ready', status: 'True' };
      await cluster.status(metadata.name!, { phase: 'Running', conditions: [ready] });
    }
    const containers = [{ name: 'c', image: 'v2' }];
    const body = { spec: { template: { spec: { containers } } } };
    await cluster.send('PATCH', `${DAEMON_SETS}/agent`, { body, contentType: MERGE });
    for (let rounds = 0; rounds < 4; rounds += 1) {
      await settle();
      for (const { metadata, status } of await pods()) {
        if (metadata.deletionTimestamp !== undefined) await cluster.remove(metadata.name!);
        else if (status?.phase !== 'Running') {
          const ready = { type: 'Ready', status: 'True' };
          await cluster.status(metadata.name!, { phase: 'Running', conditions: [ready] });
        }
      }
    }
    await settle();
    expect(await boundTo()).toEqual(['asleep', 'flapping']);
    expect((await pods()).map(({ spec }) => spec?.containers?.[0]?.image)).toEqual(['v2', 'v2']);
  });
});
