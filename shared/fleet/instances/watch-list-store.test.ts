import { describe, expect, it } from 'vitest';
import { type ControlledFleet, controlledFleet } from '../../../test/support/controlled-fleet.ts';
import { monitorParts } from '../../../test/support/monitor-parts.ts';
import type { KubeNode } from '../../kinds/types.ts';
import { cloudStore, cloudWatchWorks, isWatchedNode, watchedNodeOf } from './watch-list-store.ts';

const EC2 = 'aws:///eu-central-1a/i-0123456789abcdef0';
const node = (name: string, ready: string, spec: object = { providerID: EC2 }): KubeNode =>
  ({
    metadata: { name, uid: `u-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec,
    status: { conditions: [{ type: 'Ready', status: ready }] },
  }) as KubeNode;

it('a watched node has what the rules read of it', () => {
  const taints = [{ key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' }];
  expect(watchedNodeOf(node('n', 'False', { providerID: EC2, taints }))).toEqual({
    nodeName: 'n',
    uid: 'u-n',
    providerId: EC2,
    createdAtMs: Date.UTC(2026, 0, 1),
    ready: 'False',
    hasShutdownTaint: false,
    outOfServiceTaint: 'absent',
    uninitialised: true,
  });
  expect(watchedNodeOf({ metadata: {} })).toMatchObject({
    nodeName: '',
    uid: '',
    providerId: '',
    uninitialised: false,
  });
  expect([isWatchedNode(node('n', 'Unknown')), isWatchedNode(node('n', 'True')), isWatchedNode(undefined)]).toEqual([
    true,
    false,
    false,
  ]);
});

describe('changes of Nodes', () => {
  const { dependencies } = monitorParts({}, { nowMs: 0 });
  const positions = (...changes: readonly { before?: KubeNode; after?: KubeNode; isRetry?: boolean }[]) =>
    cloudWatchWorks(
      dependencies,
      changes.map(({ before, after, isRetry = false }, position) => ({ position, before, after, isRetry })),
    ).map(({ of }) => of);

  it('concern the list when the node is, or was, watched', () => {
    const [down, up] = [node('n', 'False'), node('n', 'True')];
    expect(positions({ before: up, after: down })).toEqual([[0]]);
    expect(positions({ before: down, after: up })).toEqual([[0]]);
    expect(positions({ after: down })).toEqual([[0]]);
    expect(positions({ before: down })).toEqual([[0]]);
    expect(positions({ before: up, after: up })).toEqual([]);
    expect(positions({ before: up, after: up, isRetry: true })).toEqual([[0]]);
  });

  it('are one work for each node', () => {
    const down = (name: string) => ({ after: node(name, 'False') });
    expect(positions(down('n'), down('m'), down('n'))).toEqual([[0, 2], [1]]);
  });
});

describe('the row of a node', () => {
  async function settled(prepare: (fleet: ControlledFleet) => Promise<void>) {
    const fleet = controlledFleet({ hasCloud: true });
    await fleet.register('n', { providerID: EC2 });
    await fleet.post('n', 'False');
    const { dependencies } = monitorParts({}, { nowMs: fleet.nowMs(), items: fleet.tables });
    const settle = async () => {
      const uid = (await fleet.node('n'))?.metadata.uid ?? 'former';
      const after = { metadata: { name: 'n', uid } };
      for (const { run } of cloudWatchWorks(dependencies, [{ position: 0, before: undefined, after, isRetry: true }]))
        await run();
      return cloudStore(fleet.tables).get('n');
    };
    const first = await settle();
    await prepare(fleet);
    return [first, await settle()];
  }

  it('follows the stored Node: not Ready, Ready, deleted', async () => {
    const [down, up] = await settled((fleet) => fleet.post('n'));
    expect([down?.ready, up]).toEqual(['False', undefined]);
    const [, unknown] = await settled((fleet) => fleet.post('n', 'Unknown'));
    expect(unknown?.ready).toBe('Unknown');
  });
});
