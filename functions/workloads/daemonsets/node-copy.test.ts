import { describe, expect, it } from 'vitest';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { LOG_RETENTION_SECONDS } from '../../../shared/store/layout.ts';
import { workloadCluster } from '../../../test/support/workload-cluster.ts';
import { nodeCopy } from './node-copy.ts';

const NODES = 1_000;

async function copied(count: number) {
  let readUnits = 0;
  const cluster = workloadCluster({
    onConsumed: (units) => {
      readUnits += units.readUnits;
    },
  });
  const node = (name: string) =>
    cluster.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { zone: 'a' } }, spec: {} });
  for (let index = 0; index < count; index += 1) await node(`n${index}`);
  const clock = { nowMs: cluster.now };
  const copy = nodeCopy({ items: cluster.tables, clock, objects: cluster.objects });
  const names = async () => (await copy.read()).map(({ name }) => name).toSorted();
  return {
    ...cluster,
    node,
    copy,
    names,
    /** Read units since the last call. */
    takeUnits(): number {
      const taken = readUnits;
      readUnits = 0;
      return taken;
    },
    /** Entries of the change log of Nodes. */
    logKeys: () =>
      cluster.tables
        .items('objects')
        .flatMap(({ pk, sk }) =>
          String(pk).startsWith('l#nodes#') ? [{ table: 'objects' as const, pk: String(pk), sk: String(sk) }] : [],
        ),
  };
}

describe('the copy of the Nodes', () => {
  it('has every Node, and every change since the last read', async () => {
    const cluster = await copied(3);
    expect(await cluster.names()).toEqual(['n0', 'n1', 'n2']);
    await cluster.remove('nodes', 'n1');
    await cluster.node('n3');
    await cluster.change('nodes', 'n0', (node) => ({ ...node, metadata: { ...node.metadata, labels: { zone: 'b' } } }));
    expect(await cluster.names()).toEqual(['n0', 'n2', 'n3']);
    expect((await cluster.copy.read()).find(({ name }) => name === 'n0')?.labels).toEqual({ zone: 'b' });
  });

  it('has a Node that was deleted and created again under its name', async () => {
    const cluster = await copied(1);
    await cluster.names();
    await cluster.remove('nodes', 'n0');
    await cluster.node('n0');
    expect(await cluster.names()).toEqual(['n0']);
    await cluster.remove('nodes', 'n0');
    expect(await cluster.names()).toEqual([]);
  });

  it('has what was committed before a read that began while another one ran', async () => {
    const cluster = await copied(1);
    const first = cluster.copy.read();
    await cluster.node('n1');
    const [, second, third] = await Promise.all([first, cluster.copy.read(), cluster.copy.read()]);
    expect(second.map(({ name }) => name)).toEqual(['n0', 'n1']);
    expect(third).toBe(second);
  });

  it('lists again after a time in which changes may have expired', async () => {
    const cluster = await copied(2);
    await cluster.names();
    await cluster.remove('nodes', 'n0');
    for (const { table, pk, sk } of cluster.logKeys())
      await cluster.tables.write({ kind: 'delete', key: { table, pk, sk } });
    cluster.advance((LOG_RETENTION_SECONDS + 1) * 1_000);
    expect(await cluster.names()).toEqual(['n1']);
  });

  it('lists again after more changes than one read of the log may return', async () => {
    const cluster = await copied(1);
    // The pages are small, like those of 1 MB in a large fleet.
    const items: ItemStore = {
      ...cluster.tables,
      query: (request) => cluster.tables.query({ ...request, limit: 1 }),
    };
    const copy = nodeCopy({ items, clock: { nowMs: cluster.now }, objects: cluster.objects });
    await copy.read();
    for (let change = 0; change <= 64; change += 1) {
      await cluster.change('nodes', 'n0', (node) => ({
        ...node,
        metadata: { ...node.metadata, labels: { change: String(change) } },
      }));
    }
    expect((await copy.read()).map(({ labels }) => labels)).toEqual([{ change: '64' }]);
  });

  it('reads one unit per shard of Nodes, and what changed', async () => {
    const cluster = await copied(NODES);
    const units = async (): Promise<number> => {
      cluster.takeUnits();
      await cluster.names();
      return cluster.takeUnits();
    };
    expect(await units()).toBeGreaterThan(80);
    expect(await units()).toBe(8);
    await cluster.node('another');
    expect(await units()).toBe(9);
  });
});
