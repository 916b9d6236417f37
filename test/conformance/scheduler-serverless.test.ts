/**
 * SX: concurrency, cost, the safety gate. Each interleaving is forced: it happens between a decision and its commit.
 */
import { describe, expect, it } from 'vitest';
import type { KubeDecision, TopologySpreadConstraint } from '../../shared/kinds/types.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { MERGE } from '../support/api-in-memory.ts';
import { START_MS } from '../support/controlled-fleet.ts';
import { type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const cpu = (amount: string): PodParts => ({ requests: { cpu: amount } });

/** `commits.before` runs once, before the next transaction that binds pods. */
function interrupted(): { on: ScheduledCluster; commits: { before?: (() => Promise<unknown>) | undefined } } {
  const commits: { before?: (() => Promise<unknown>) | undefined } = {};
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    async transact(writes) {
      if (writes.some(({ key }) => key.sk === 'order')) {
        const run = commits.before;
        commits.before = undefined;
        await run?.();
      }
      return items.transact(writes);
    },
  });
  return { on: new ScheduledCluster({ between }), commits };
}

const records = async (on: ScheduledCluster, act: string): Promise<readonly KubeDecision[]> => {
  const { items } = (await on.send('GET', '/apis/nodekeeper.dev/v1alpha1/decisions?limit=500')) as unknown as {
    items: KubeDecision[];
  };
  return items.filter(({ spec }) => spec?.act === act);
};

/** Another process, which does not wait for its turn. It dies after its first binding. */
function secondProcess(on: ScheduledCluster) {
  const { tables } = on.fleet;
  let isDead = false;
  return on.fleet.makeControllers({
    ...tables,
    async write(write, options) {
      if (isDead) throw new Error('killed');
      const isTurn = write.key.pk === 'scheduler' && write.key.sk === 'turn' && write.kind === 'update';
      const { when: _when, ...free } = write;
      return tables.write(isTurn && write.set?.['busyUntil'] !== 0 ? free : write, options);
    },
    async transact(writes) {
      if (isDead) throw new Error('killed');
      const outcome = await tables.transact(writes);
      isDead = outcome.kind === 'written' && writes.some(({ key }) => key.sk === 'order');
      return outcome;
    },
  });
}

describe('SX concurrency and the serverless form', () => {
  it('SX-01: a request during the end of a pass is not lost', async () => {
    let atEnd: (() => Promise<unknown>) | undefined;
    const on: ScheduledCluster = new ScheduledCluster({
      between: (items) => ({
        ...items,
        async write(write, options) {
          const isEnd = write.key.sk === 'turn' && write.kind === 'update' && write.set?.['busyUntil'] === 0;
          const run = isEnd ? atEnd : undefined;
          if (isEnd) atEnd = undefined;
          await run?.();
          return items.write(write, options);
        },
      }),
    });
    await on.node('n1');
    await on.pod('p');
    atEnd = async () => {
      await on.pod('q');
      // Its record is delivered, and no wake-up follows: a pass is running.
      await on.fleet.streams();
    };
    await on.settle();
    expect(atEnd).toBeUndefined();
    expect([await on.nodeOf('p'), await on.nodeOf('q')]).toEqual(['n1', 'n1']);
    expect(on.woken).toEqual([]);
  });

  it('SX-03 two passes that decide on one snapshot never fill a node twice', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { allocatable: { cpu: '1' } });
    await on.pod('p', cpu('1'));
    await on.fleet.streams();
    const other = secondProcess(on);
    commits.before = async () => {
      await on.pod('q', { ...cpu('1'), priority: 10 });
      await on.fleet.streams();
      await other.tickScheduler(0).catch(() => undefined);
    };
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect([await on.nodeOf('p'), await on.nodeOf('q')].toSorted()).toEqual(['', 'n1']);
  });

  it('SX-05: a pass that dies between its commits', async () => {
    let commits = 0;
    let isDead = false;
    const on = new ScheduledCluster({
      between: (items) => ({
        ...items,
        async transact(writes) {
          const binds = writes.some(({ key }) => key.sk === 'order');
          isDead ||= binds && commits === 1;
          if (isDead) throw new Error('killed');
          const outcome = await items.transact(writes);
          if (binds && outcome.kind === 'written') commits += 1;
          return outcome;
        },
        async write(write, options) {
          if (isDead) throw new Error('killed');
          return items.write(write, options);
        },
      }),
    });
    await on.node('n1');
    for (let index = 0; index < 14; index += 1) await on.pod(`p${index}`, cpu('100m'));
    await on.settle().catch(() => undefined);
    expect(isDead).toBe(true);
    const bound = async () => {
      const names = await Promise.all(Array.from({ length: 14 }, (_, index) => on.nodeOf(`p${index}`)));
      return names.filter((name) => name === 'n1').length;
    };
    expect(await bound()).toBe(12);
    isDead = false;
    commits = 10;
    // The turn of the dead pass ends by itself.
    await on.at(40);
    expect(await bound()).toBe(14);
  });

  it('SX-07: the last cpu is used by a person after the decision', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { allocatable: { cpu: '1' } });
    await on.pod('p', cpu('1'));
    commits.before = () => on.running('theirs', 'n1', cpu('1'));
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect(await on.reasons('p')).toBe('1 Insufficient cpu.');
    expect(await on.nodeOf('theirs')).toBe('n1');
  });

  it('SX-07 also by a binding', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { allocatable: { cpu: '1' } });
    await on.pod('theirs', { ...cpu('1'), spec: { schedulerName: 'other' } });
    await on.pod('p', cpu('1'));
    commits.before = () =>
      on.send('POST', '/api/v1/namespaces/default/pods/theirs/binding', {
        body: { metadata: { name: 'theirs' }, target: { kind: 'Node', name: 'n1' } },
      });
    await on.settle();
    expect(await on.reasons('p')).toBe('1 Insufficient cpu.');
  });

  it('SX-09 the Node is deleted and created again after the decision', async () => {
    const { on, commits } = interrupted();
    await on.node('n1');
    await on.pod('p', cpu('2'));
    commits.before = async () => {
      await on.send('DELETE', '/api/v1/nodes/n1');
      await on.createNode('n1', { allocatable: { cpu: '1' } });
    };
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect(await on.nodeOf('p')).toBe('');
  });

  it('SX-09 also another Node, with a pod that keeps away', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { zone: 'a' });
    await on.node('n2', { zone: 'a' });
    const labels = { app: 'x' };
    const required = { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: labels } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    await on.running('q', 'n2', { labels, spec: { affinity } });
    await on.send('DELETE', '/api/v1/nodes/n2');
    await on.fleet.streams();
    await on.pod('p', { labels, spec: { affinity } });
    commits.before = () => on.createNode('n2', { zone: 'a' });
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect(await on.nodeOf('p')).toBe('');
    expect(await on.reasons('p')).toContain("1 node(s) didn't match pod anti-affinity rules");
  });

  it('SX-09: pods on deleted Nodes, more of them than one transaction has conditions', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { zone: 'a' });
    const labels = { app: 'x' };
    const required = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    for (let index = 0; index < 100; index += 1) await on.running(`on-${index}`, `missing-${index}`, { labels });
    for (const name of ['p', 'q', 'r']) await on.pod(name, { spec: { affinity } });
    await on.settle();
    for (const name of ['p', 'q', 'r']) expect(await on.nodeOf(name)).toBe('n1');
  });

  it('SX-11 anti-affinity by zone holds between two passes', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { zone: 'a' });
    await on.node('n2', { zone: 'a' });
    await on.node('n3', { zone: 'b', allocatable: { cpu: '1' } });
    await on.running('full', 'n3', cpu('1'));
    const labels = { app: 'x' };
    const required = { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: labels } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    const onNode = (name: string) => ({ affinity, nodeSelector: { 'kubernetes.io/hostname': name } });
    await on.pod('p', { labels, spec: onNode('n1') });
    await on.fleet.streams();
    const other = secondProcess(on);
    commits.before = async () => {
      // On another node: only the zone is shared.
      await on.pod('q', { labels, spec: onNode('n2'), priority: 10 });
      await other.tickScheduler(0).catch(() => undefined);
    };
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect([await on.nodeOf('p'), await on.nodeOf('q')]).toEqual(['', 'n2']);
  });

  it('SX-15: an hour in which nothing waits', async () => {
    const on = new ScheduledCluster();
    for (let index = 0; index < 20; index += 1) await on.node(`n${index}`);
    await on.pod('p');
    await on.settle();
    on.fleet.consumed();
    for (let minute = 1; minute <= 60; minute += 1) {
      on.fleet.at(minute * 60);
      const conditions = [
        { type: 'Ready', status: 'True', lastHeartbeatTime: new Date(on.fleet.nowMs()).toISOString() },
      ];
      await on.patchNode('n1', { status: { conditions } }, '/status');
      await on.fleet.streams();
    }
    const { requests } = on.fleet.consumed();
    expect(on.woken).toEqual([]);
    const before = await on.fleet.tables.query({ table: 'control', pk: 'scheduler', consistent: true });
    on.fleet.consumed();
    // The sweeps of the hour.
    for (let minute = 1; minute <= 60; minute += 1) await on.tick();
    const sweeps = on.fleet.consumed();
    expect(sweeps.writeUnits).toBe(0);
    // The turn, and the heads of the 8 shards of pods; 0.5 each.
    expect(sweeps.readUnits).toBe(60 * 4.5);
    expect(requests.filter(({ table, writeUnits }) => table === 'control' && writeUnits > 0)).toEqual([]);
    expect(await on.fleet.tables.query({ table: 'control', pk: 'scheduler', consistent: true })).toEqual(before);
  });

  it('SX-22 binds a pod at the next sweep, if its record was lost and nothing else asks', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.pod('first');
    await on.settle();
    const lost = async (name: string) => {
      await on.pod(name, { spec: { schedulingGates: [{ name: 'wait' }] } });
      await on.settle();
      await on.send('PATCH', `/api/v1/namespaces/default/pods/${name}`, {
        body: { spec: { schedulingGates: [] } },
        contentType: MERGE,
      });
      on.fleet.loseRecords();
      expect(on.woken.splice(0)).toEqual([]);
    };
    await lost('p');
    expect(await on.nodeOf('p')).toBe('');
    on.fleet.at(60);
    await on.tick();
    expect(await on.nodeOf('p')).toBe('n1');
    // A process that has just started.
    await lost('q');
    on.fleet.at(120);
    await on.fleet.makeControllers(on.fleet.tables).tickScheduler(on.fleet.slot());
    expect(await on.nodeOf('q')).toBe('n1');
  });

  it('SX-17 attempts that say nothing new cost a write unit each', async () => {
    const on = new ScheduledCluster();
    await on.pod('p');
    await on.settle();
    const turns = 2;
    for (const seconds of [1, 3, 7, 15, 25]) {
      on.fleet.at(seconds);
      on.fleet.consumed();
      await on.tick();
      // Besides the begin and the end of the pass.
      expect(on.fleet.consumed().writeUnits).toBe(1 + turns);
    }
    expect(await records(on, 'PodUnschedulable')).toHaveLength(1);
  });

  it('SX-19: a node that is marked after the decision', async () => {
    const { on, commits } = interrupted();
    await on.node('n1');
    await on.pod('p');
    commits.before = () =>
      on.patchNode('n1', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, '/status');
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect(await on.nodeOf('p')).toBe('');
    // The taint may not be stored yet: the condition is enough.
    expect(await on.reasons('p')).toBe('1 node(s) had untolerated taint(s).');
  });

  it.each([
    [undefined, ['', '']],
    ['Honor', ['a', 'b']],
  ] as const)('SX-21: a dark zone with nodeTaintsPolicy %s', async (nodeTaintsPolicy, expected) => {
    const on = new ScheduledCluster();
    for (const zone of ['a', 'b', 'c']) await on.node(zone, { zone });
    const labels = { app: 'web' };
    for (const zone of ['a', 'b']) for (const each of [1, 2]) await on.running(`${zone}${each}`, zone, { labels });
    const taints = [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }];
    await on.patchNode('c', { spec: { taints }, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
    await on.patchNode('c', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, '/status');
    await on.settle();
    const constraint = {
      maxSkew: 1,
      topologyKey: 'topology.kubernetes.io/zone',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: labels },
      ...(nodeTaintsPolicy && { nodeTaintsPolicy }),
    } satisfies TopologySpreadConstraint;
    for (const name of ['p', 'q']) await on.pod(name, { labels, spec: { topologySpreadConstraints: [constraint] } });
    await on.settle();
    expect([await on.nodeOf('p'), await on.nodeOf('q')].toSorted()).toEqual(expected);
    if (nodeTaintsPolicy === undefined) {
      expect(await on.reasons('p')).toContain("node(s) didn't match pod topology spread constraints");
    }
  });

  it('SX-25 what a person binds meanwhile stands, and is seen by the next decision', async () => {
    const { on, commits } = interrupted();
    await on.node('n1', { zone: 'a' });
    await on.node('n2', { zone: 'a', unschedulable: true });
    const required = { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: { app: 'x' } } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    await on.pod('p', { spec: { affinity } });
    commits.before = () => on.running('theirs', 'n2', { labels: { app: 'x' } });
    await on.settle();
    expect(commits.before).toBeUndefined();
    expect([await on.nodeOf('p'), await on.nodeOf('theirs')]).toEqual(['n1', 'n2']);
    await on.pod('q', { spec: { affinity } });
    await on.settle();
    expect(await on.reasons('q')).toContain("1 node(s) didn't match pod anti-affinity rules");
  });

  it('SX-27: also the time before the last gate was removed', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { cpu: '500m' } });
    await on.pod('q', { ...cpu('1'), spec: { schedulingGates: [{ name: 'a' }] } });
    await on.settle();
    on.fleet.at(3_600);
    const body = { spec: { schedulingGates: null } };
    await on.send('PATCH', '/api/v1/namespaces/default/pods/q', { body, contentType: MERGE });
    await on.settle();
    const oldest = () => on.fleet.metrics.findLast(({ name }) => name === 'scheduler_oldest_pending_seconds')?.value;
    expect(oldest()).toBe(0);
    const [record] = await records(on, 'PodUnschedulable');
    expect(record?.spec?.['inputs']).toMatchObject({ waitedMs: 0, attempt: 1 });
    await on.at(3_600 + 302);
    expect(oldest()).toBe(302);
  });

  it('SX-27 the age of the oldest pod excludes gated ones', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { cpu: '500m' } });
    await on.pod('q', { spec: { schedulingGates: [{ name: 'a' }] } });
    on.fleet.at(3_600);
    await on.pod('p', cpu('1'));
    await on.settle();
    await on.at(3_600 + 302);
    const last = (name: string) => on.fleet.metrics.findLast((metric) => metric.name === name)?.value;
    expect(last('scheduler_oldest_pending_seconds')).toBe(302);
    // The queue gated is measured last of four.
    expect(last('scheduler_pending_pods')).toBe(1);
  });
});

describe('the closed safety gate', () => {
  it('leaves only nodes with a recent heartbeat, and preempts no pod', async () => {
    // No tick of node-monitor has run: the gate is closed.
    const on = new ScheduledCluster({ policy: { schedulerGate: 'hold' } });
    await on.node('old', { allocatable: { pods: '1' } });
    on.fleet.at(120);
    await on.node('n1', { allocatable: { pods: '1' } });
    await on.pod('p');
    await on.settle();
    expect(await on.nodeOf('p')).toBe('n1');
    await on.pod('q', { priority: 10 });
    await on.settle();
    expect(await on.reasons('q')).toBe(
      '1 Too many pods, 1 node(s) had no recent heartbeat while the safety gate was closed.',
    );
    expect(await on.preemptionText('q')).toBe('not eligible due to a closed safety gate.');
    expect(on.fleet.nowMs()).toBe(START_MS + 120_000);
    // Once, although two passes were held.
    const held = await records(on, 'SchedulingHeld');
    expect(held.map(({ spec }) => spec?.reason)).toEqual([
      'safety gate closed: node-monitor missed ticks; pods are bound only to the 1 of 2 nodes with a recent heartbeat, and no pod is preempted',
    ]);
  });

  it('is not recorded by the scheduler that does not observe it, nor while no pod is due', async () => {
    const off = new ScheduledCluster();
    await off.node('n1');
    await off.pod('p');
    await off.settle();
    const idle = new ScheduledCluster({ policy: { schedulerGate: 'hold' } });
    await idle.node('n1');
    await idle.settle();
    for (const on of [off, idle]) expect(await records(on, 'SchedulingHeld')).toEqual([]);
  });
});
