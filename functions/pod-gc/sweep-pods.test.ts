import { describe, expect, it } from 'vitest';
import { podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import { settledFleet } from '../../test/support/controlled-fleet.ts';

/** A node `a-0` with pods, after their records. `read`: the work list. */
async function sweptFleet(pods: Readonly<Record<string, string>>, options = {}) {
  const { fleet } = await settledFleet({ a: 1 }, options);
  for (const [name, phase] of Object.entries(pods)) await fleet.addPod(name, 'a-0', { phase });
  await fleet.streams();
  const store = podGcStore(fleet.tables);
  const read = async () => {
    const { pods: rows, missing, volumes, sweep } = await store.read();
    return {
      pods: rows.map(({ name, phase }) => `${name} ${phase}`).sort(),
      missing: [...missing.keys()],
      volumes: volumes.map(({ nodeName }) => nodeName),
      sweep,
    };
  };
  return { fleet, store, read };
}

const row = (name: string, phase = 'Succeeded') => ({
  namespace: 'default',
  name,
  uid: name,
  nodeName: 'a-0',
  phase,
  terminating: false,
  evicted: false,
  createdAtMs: 0,
});

describe('a sweep of the work list', () => {
  it('adds rows of terminated pods, drops rows of running and of deleted ones, and corrects wrong ones', async () => {
    const { fleet, store, read } = await sweptFleet({ done: 'Succeeded', failed: 'Failed', runs: 'Running' });
    await store.dropPod(row('done'));
    await store.putPod(row('failed', 'Succeeded'));
    await store.putPod(row('runs'));
    await store.putPod(row('deleted'));
    await fleet.collect();
    expect(await read()).toMatchObject({ pods: ['done Succeeded', 'failed Failed'], missing: [] });
    expect(fleet.told).toContainEqual(
      expect.objectContaining({ message: 'work list of pod-gc was repaired', fields: { rows: 4 } }),
    );
  });

  it('writes no row that is right, and is due again after a quarter of an hour', async () => {
    const { fleet, read } = await sweptFleet({ done: 'Succeeded', runs: 'Running' });
    await fleet.collect();
    expect(fleet.told.filter(({ message }) => message.includes('repaired'))).toEqual([]);
    expect((await read()).sweep).toEqual({ dueAtMs: fleet.nowMs() + 900_000, after: undefined });
  });

  it('waits until it is due', async () => {
    const { fleet, store, read } = await sweptFleet({ done: 'Succeeded' });
    await fleet.collect();
    await store.dropPod(row('done'));
    fleet.at(899);
    await fleet.collect();
    expect((await read()).pods).toEqual([]);
    fleet.at(900);
    await fleet.collect();
    expect((await read()).pods).toEqual(['done Succeeded']);
  });

  it('begins the quarantine of node names that have pods and no Node, once', async () => {
    const { fleet, store, read } = await sweptFleet({});
    await fleet.addPod('orphan', 'lost', {});
    await fleet.addPod('unbound', '', { phase: 'Pending' });
    await fleet.streams();
    const [since] = (await store.read()).missing.values();
    if (since !== undefined) await store.dropMissing('lost', since);
    await fleet.collect();
    expect((await read()).missing).toEqual(['lost']);
  });

  it('lists nodes that are not Ready and have EBS volumes attached', async () => {
    const { fleet, read } = await sweptFleet({}, { hasCloud: true });
    await fleet.register('a-1', { zone: 'a' });
    await fleet.post('a-1', 'False');
    await fleet.attach('of-unready', 'a-1');
    await fleet.attach('of-ready', 'a-0');
    await fleet.attach('of-another-driver', 'a-2', { spec: { attacher: 'another.csi.example' } });
    await fleet.collect();
    expect((await read()).volumes).toEqual(['a-1']);
  });

  it('continues behind the last page in a later pass, and drops left rows of each page', async () => {
    const { fleet, store, read } = await sweptFleet({ b: 'Running', d: 'Succeeded' });
    for (const name of ['a', 'c', 'e']) await store.putPod(row(name));
    await store.saveSweep({ dueAtMs: fleet.nowMs(), after: 'default/b' });
    await fleet.collect();
    // Rows up to the pod from which it continues belong to the pass before.
    expect((await read()).pods).toEqual(['a Succeeded', 'd Succeeded']);
  });
});
