/**
 * Area LG: the older model that deleted a node's pods directly. Ours is the present one: the limiter paces the taint,
 * pods follow by their tolerations. These tests show what becomes of the old outcomes.
 */
import { describe, expect, it } from 'vitest';
import { withDefaultTolerations } from '../../shared/fleet/nodes/taint.ts';
import { DAEMON_SET_TOLERATIONS } from '../support/daemon-set.ts';
import { aPod, aTaint, EvictionWorld } from '../support/eviction-world.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const plain = withDefaultTolerations([], 300);

describe('legacy direct eviction', () => {
  it('LG-01 (ours) a default pod is deleted 300 s after the taint, not earlier', () => {
    const world = new EvictionWorld();
    world.taints = [aTaint(NOT_READY, 0)];
    world.pods = [aPod('p1', plain)];
    world.handle();
    world.runTo(400, 5_000);
    expect(world.deletedAtMs.get('p1')).toBe(300_000);
  });

  it('LG-03 (ours) the plain pod is deleted, the DaemonSet pod and the terminating pod stay, and no status is NodeLost', () => {
    const world = new EvictionWorld();
    world.taints = [aTaint(NOT_READY, 0)];
    world.pods = [aPod('p1', plain), aPod('p2', DAEMON_SET_TOLERATIONS), aPod('p3', plain, { terminating: true })];
    world.handle();
    world.runTo(600, 5_000);
    expect([...world.deletedAtMs.keys()]).toEqual(['p1']);
    expect(world.events).toEqual(['Marking for deletion Pod default/p1']);
  });

  it('LG-05 keeps the pods of a node that is Ready before the time is over', () => {
    const world = new EvictionWorld();
    world.taints = [aTaint(NOT_READY, 0)];
    world.pods = [aPod('p1', plain)];
    world.handle();
    world.at(299, (w) => (w.taints = []));
    world.runTo(600, 5_000);
    expect(world.deletedAtMs.size).toBe(0);
  });
});
