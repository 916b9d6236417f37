/**
 * Area TW: the timed work behind eviction, by evictor and streams. Our timers are stored items that belong to a pod's
 * uid.
 */
import { describe, expect, it } from 'vitest';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { settledFleet } from '../support/controlled-fleet.ts';
import { tolerating } from '../support/eviction-world.ts';

/** So many pods that tolerate the taint of their node for so long; it comes now. */
async function tainted(seconds: number, count: number) {
  const policy = { tickGate: 'off', ingestGate: 'off' } as const;
  const { fleet } = await settledFleet({ a: 1, b: 1 }, { policy });
  const names = Array.from({ length: count }, (_, index) => `p${index + 1}`);
  for (const name of names) await fleet.addPod(name, 'a-0', { tolerations: [tolerating('t1', seconds)] });
  const setTaints = async (...keys: string[]) => {
    const taints = keys.map((key) => ({ key, effect: 'NoExecute' as const, timeAdded: formatTime(fleet.nowMs()) }));
    await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints } }));
    await fleet.streams();
  };
  await setTaints('t1');
  const tick = async (at: number) => {
    fleet.at(at);
    await fleet.controllers.tickEvictor(fleet.slot());
    await fleet.streams();
  };
  const deleted = async () => {
    const pods = await Promise.all(names.map(async (name) => [name, await fleet.pod(name)] as const));
    return pods.flatMap(([name, pod]) => (pod?.metadata.deletionTimestamp === undefined ? [] : [name]));
  };
  return { fleet, setTaints, tick, deleted };
}

describe('eviction timers', () => {
  it('TW-01 five items due now are five deletions', async () => {
    const { deleted } = await tainted(0, 5);
    expect(await deleted()).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
  });

  it('TW-03 items added twice run once, cancelled ones never', async () => {
    const { fleet, setTaints, tick, deleted } = await tainted(10, 5);
    await setTaints('t1');
    expect(await fleet.timers('a-0')).toHaveLength(5);
    fleet.at(5);
    for (const name of ['p2', 'p4']) {
      await fleet.changePod(name, (pod) => ({ ...pod, spec: { ...pod.spec, tolerations: [tolerating('t1')] } }));
    }
    await fleet.streams();
    await tick(10);
    await tick(15);
    expect(await deleted()).toEqual(['p1', 'p3', 'p5']);
  });

  it('TW-05 a replacement under the same name has its own timer, and loses it with the taint', async () => {
    const { fleet, setTaints, tick } = await tainted(10, 1);
    const [first] = await fleet.timers('a-0');
    fleet.at(4);
    // The old pod is deleted by its owner; a new one of the same name is bound before the streams deliver that.
    await fleet.removePod('p1');
    await fleet.addPod('p1', 'a-0', { tolerations: [tolerating('t1', 10)] });
    await fleet.streams();
    const second = (await fleet.pod('p1'))?.metadata.uid;
    expect(await fleet.timers('a-0')).toMatchObject([{ name: 'p1', podUid: second, atMs: fleet.nowMs() + 10_000 }]);
    expect(first?.podUid).not.toBe(second);
    await tick(10);
    expect((await fleet.pod('p1'))?.metadata.deletionTimestamp).toBeUndefined();
    fleet.at(11);
    await setTaints();
    expect(await fleet.timers('a-0')).toEqual([]);
    expect((await fleet.events('TaintManagerEviction')).map(({ message }) => message)).toEqual([
      'Cancelling deletion of Pod default/p1',
    ]);
  });
});
