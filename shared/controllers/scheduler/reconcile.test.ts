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
