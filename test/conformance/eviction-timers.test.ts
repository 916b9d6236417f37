/** Area TW: the timed work behind eviction. Our timers are stored items that belong to a pod's uid. */
import { describe, expect, it } from 'vitest';
import { aPod, aTaint, EvictionWorld, tolerating } from '../support/eviction-world.ts';

const world = (seconds: number, count: number): EvictionWorld => {
  const made = new EvictionWorld();
  made.taints = [aTaint('t1')];
  made.pods = Array.from({ length: count }, (_, index) => aPod(`p${index + 1}`, [tolerating('t1', seconds)]));
  return made;
};

describe('eviction timers', () => {
  it('TW-01 five items due now are five deletions', () => {
    const five = world(0, 5);
    five.handle();
    expect(five.deletedAtMs.size).toBe(5);
  });

  it('TW-03 items added twice run once, cancelled ones never', () => {
    const five = world(10, 5);
    five.handle();
    five.handle();
    expect(five.timers.size).toBe(5);
    five.at(5, (w) => {
      w.replacePod('p2', { tolerations: [tolerating('t1')] });
      w.replacePod('p4', { tolerations: [tolerating('t1')] });
    });
    five.runTo(11);
    expect([...five.deletedAtMs.keys()]).toEqual(['p1', 'p3', 'p5']);
  });

  it('TW-05 a replacement under the same name has its own timer while the first still runs', () => {
    const one = world(0, 1);
    one.deletionFails = true;
    one.handle();
    // The old pod ends by itself; a new one of the same name is bound, due 10 s from now.
    one.pods = [aPod('p1', [tolerating('t1', 10)], { uid: 'uid-second', boundAtMs: 0 })];
    expect(one.handle().map(({ kind, podUid }) => `${kind} ${podUid}`)).toEqual(['schedule uid-second', 'drop uid-p1']);
    expect(one.dueInSeconds('p1')).toBe(10);
    one.at(1, (w) => (w.taints = []));
    expect(one.timers.size).toBe(0);
    expect(one.events).toEqual(['Marking for deletion Pod default/p1', 'Cancelling deletion of Pod default/p1']);
  });
});
