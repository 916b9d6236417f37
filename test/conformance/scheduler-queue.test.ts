/** SQ: queue, gates, backoff, and what lets a rejected pod be tried again. Seconds from the start. */
import { describe, expect, it } from 'vitest';
import { MERGE, podsIn } from '../support/api-in-memory.ts';
import { type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const cpu = (amount: string): PodParts => ({ requests: { cpu: amount } });

/** A cluster in which the only node is full, and p waits for cpu. */
async function waiting(parts: PodParts = cpu('1')): Promise<ScheduledCluster> {
  const on = new ScheduledCluster();
  await on.node('n1');
  await on.running('full', 'n1', cpu('4'));
  await on.pod('p', parts);
  await on.settle();
  expect(await on.nodeOf('p')).toBe('');
  return on;
}

/** Attempts that ended with a rejection, so far. */
const attempts = (on: ScheduledCluster): number =>
  on.fleet.metrics
    .filter(({ name }) => name === 'scheduler_schedule_attempts_total')
    .reduce((sum, { value }) => sum + value, 0);

/** Whether the change lets p be tried once its backoff is over. */
async function isRequeuedBy(on: ScheduledCluster, change: () => Promise<unknown>): Promise<boolean> {
  const before = attempts(on);
  await change();
  await on.settle();
  await on.at(on.fleet.seconds() + 20);
  return attempts(on) > before;
}

describe('SQ queue, gates, backoff, requeue', () => {
  it('SQ-01 the higher priority is bound first', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { allocatable: { pods: '1' } });
    await on.pod('low', { priority: 10 });
    on.fleet.at(1);
    await on.pod('high', { priority: 100 });
    on.fleet.at(2);
    await on.settle();
    expect([await on.nodeOf('high'), await on.nodeOf('low')]).toEqual(['n1', '']);
  });

  it('SQ-03 waits 1, 2, 4, 8, 10, 10 seconds between attempts', async () => {
    const on = await waiting();
    const times: number[] = [0];
    let pods = 0;
    for (let tenths = 1; tenths <= 355; tenths += 1) {
      const before = attempts(on);
      on.fleet.at(tenths / 10);
      // A change that may help: a pod is deleted, and another one is created.
      pods += 1;
      await on.running(`other-${pods}`, 'n1');
      await on.remove(`other-${pods}`);
      await on.settle();
      await on.tick();
      if (attempts(on) > before) times.push(tenths / 10);
    }
    expect(times).toEqual([0, 1, 3, 7, 15, 25, 35]);
  });

  it('SQ-05 the backoff also holds when a node with room is added', async () => {
    const on = await waiting();
    on.fleet.at(0.3);
    await on.node('n2');
    await on.settle();
    for (const seconds of [0.3, 0.9]) {
      await on.at(seconds);
      expect(await on.nodeOf('p')).toBe('');
    }
    await on.at(1);
    expect(await on.nodeOf('p')).toBe('n2');
  });

  it('SQ-07: a gated pod is not tried', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.pod('p', { spec: { schedulingGates: [{ name: 'a' }, { name: 'b' }] } });
    await on.settle();
    await on.at(60);
    expect(await on.scheduled('p')).toMatchObject({
      status: 'False',
      reason: 'SchedulingGated',
      message: 'Scheduling is blocked due to non-empty scheduling gates',
    });
    expect(await on.events('FailedScheduling')).toEqual([]);
    expect(attempts(on)).toBe(0);
    // The last gate is removed: due at once.
    await on.send('PATCH', `${podsIn('default')}/p`, { body: { spec: { schedulingGates: null } }, contentType: MERGE });
    await on.settle();
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-09: a pod that is deleted lets p be tried', async () => {
    const on = await waiting();
    expect(await isRequeuedBy(on, () => on.remove('full'))).toBe(true);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-11: a node that p would not fit empty does not', async () => {
    const on = await waiting(cpu('3'));
    expect(await isRequeuedBy(on, () => on.node('n2', { allocatable: { cpu: '2' } }))).toBe(false);
  });

  it('SQ-13 another resource does not', async () => {
    const on = await waiting();
    const allocatable = { cpu: '4', memory: '16Gi', 'ephemeral-storage': '20Gi', pods: '110' };
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { status: { allocatable } }, '/status'))).toBe(false);
  });

  it('SQ-15: a label that matches now does, a change of a node that matched before does not', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    await on.pod('p', { spec: { nodeSelector: { disk: 'ssd' } } });
    await on.settle();
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { metadata: { labels: { other: 'x' } } }))).toBe(false);
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { metadata: { labels: { disk: 'ssd' } } }))).toBe(true);
    expect(await on.nodeOf('p')).toBe('n1');
    // n1 matches but is full: the labels that it gets besides do not help.
    await on.running('full', 'n1', cpu('4'));
    await on.pod('q', { ...cpu('1'), spec: { nodeSelector: { disk: 'ssd' } } });
    await on.settle();
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { metadata: { labels: { more: 'y' } } }))).toBe(false);
  });

  it('SQ-17: a condition does not, the taint does', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { taints: [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }] });
    await on.pod('p');
    await on.settle();
    const conditions = [
      { type: 'Ready', status: 'True' },
      { type: 'MemoryPressure', status: 'False' },
    ];
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { status: { conditions } }, '/status'))).toBe(false);
    expect(await isRequeuedBy(on, () => on.patchNode('n1', { spec: { taints: null } }))).toBe(true);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-19: an own toleration does, after the backoff', async () => {
    const on = new ScheduledCluster();
    await on.node('n1', { taints: [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }] });
    await on.pod('p');
    await on.settle();
    const { spec } = await on.get('p');
    const tolerations = [...(spec?.tolerations ?? []), { key: 'dedicated', operator: 'Exists' }];
    on.fleet.at(0.5);
    await on.send('PATCH', `${podsIn('default')}/p`, { body: { spec: { tolerations } }, contentType: MERGE });
    await on.settle();
    expect(await on.nodeOf('p')).toBe('');
    await on.at(1);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-21 spread: a pod of the own namespace does, one of another namespace does not', async () => {
    const on = new ScheduledCluster();
    await on.namespace('other');
    await on.node('n1');
    await on.node('n2', { unschedulable: true });
    const web = { app: 'web' };
    await on.running('mine', 'n1', { labels: web });
    await on.running('theirs', 'n1', { labels: web, namespace: 'other' });
    await on.pod('p', {
      labels: web,
      spec: {
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: web },
          },
        ],
      },
    });
    await on.settle();
    expect(await isRequeuedBy(on, () => on.remove('theirs', 'other'))).toBe(false);
    expect(await isRequeuedBy(on, () => on.remove('mine'))).toBe(true);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-23 affinity: a matching pod that is bound does, one that is only created does not', async () => {
    const on = new ScheduledCluster();
    await on.node('n1');
    const affinity = {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { svc: 'scan' } } },
        ],
      },
    };
    await on.pod('p', { spec: { affinity } });
    await on.settle();
    const scan = { labels: { svc: 'scan' } };
    const gated = { ...scan, spec: { schedulingGates: [{ name: 'a' }] } };
    expect(await isRequeuedBy(on, () => on.pod('only-created', gated))).toBe(false);
    expect(await isRequeuedBy(on, () => on.running('bound', 'n1', scan))).toBe(true);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('SQ-25: a change during the attempt is not lost', async () => {
    let during: (() => Promise<unknown>) | undefined;
    const on = new ScheduledCluster({
      between: (items) => ({
        ...items,
        // The first commit of the scheduler is that of the rejection.
        async transact(writes) {
          const run = during;
          during = undefined;
          await run?.();
          return items.transact(writes);
        },
      }),
    });
    await on.node('n1', { allocatable: { cpu: '1' } });
    await on.pod('p', cpu('2'));
    during = () => on.createNode('n2');
    await on.settle();
    expect(during).toBeUndefined();
    expect(await on.nodeOf('p')).toBe('');
    await on.at(1);
    expect(await on.nodeOf('p')).toBe('n2');
  });

  it('SQ-27 changes that do not concern scheduling cause no attempt before 300 s', async () => {
    const on = await waiting();
    const before = attempts(on);
    const times: number[] = [];
    for (let seconds = 10; seconds <= 600; seconds += 10) {
      on.fleet.at(seconds);
      await on.patchNode('n1', { metadata: { annotations: { seconds: String(seconds) } } });
      const conditions = [
        { type: 'Ready', status: 'True', lastHeartbeatTime: new Date(on.fleet.nowMs()).toISOString() },
      ];
      await on.patchNode('n1', { status: { conditions } }, '/status');
      await on.settle();
      await on.tick();
      if (attempts(on) > before + times.length) times.push(seconds);
    }
    expect(times).toEqual([310]);
  });
});
