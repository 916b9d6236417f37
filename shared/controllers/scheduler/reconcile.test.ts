import { describe, expect, it } from 'vitest';
import { ScheduledCluster } from '../../../test/support/scheduled-cluster.ts';

describe('the scheduler', () => {
  it('binds a new pod after its stream record, without a sweep', async () => {
    const cluster = new ScheduledCluster();
    await cluster.node('n1');
    await cluster.pod('p', { requests: { cpu: '1' } });
    await cluster.settle();
    expect(await cluster.nodeOf('p')).toBe('n1');
    expect(cluster.fleet.told.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('measures a pod when it has waited as long as the alarm allows, although no attempt is due', async () => {
    const oldest: number[] = [];
    const plugins: (string | undefined)[] = [];
    const cluster = new ScheduledCluster({
      policy: { pendingPodAlarmSeconds: 60 },
      meter: {
        add(name, value, _unit, dimensions) {
          if (name === 'scheduler_oldest_pending_seconds') oldest.push(value);
          if (name === 'scheduler_unschedulable_pods') plugins.push(dimensions?.['plugin']);
        },
      },
    });
    await cluster.node('n1', { unschedulable: true });
    await cluster.pod('p');
    await cluster.settle();
    expect(plugins).toEqual(['NodeUnschedulable']);
    oldest.length = 0;
    await cluster.at(59);
    expect(oldest).toEqual([]);
    await cluster.at(65);
    expect(oldest).toEqual([65]);
    await cluster.at(120);
    expect(oldest).toEqual([65]);
  });

  it('is woken by node-monitor when a waiting pod is due, and only then', async () => {
    const cluster = new ScheduledCluster();
    await cluster.pod('p');
    await cluster.settle();
    cluster.fleet.at(0.5);
    await cluster.fleet.controllers.tickNodeMonitor(cluster.fleet.slot());
    expect(cluster.woken).not.toContain('scheduler');
    cluster.fleet.at(5);
    await cluster.fleet.controllers.tickNodeMonitor(cluster.fleet.slot());
    expect(cluster.woken).toContain('scheduler');
  });
});
