/**
 * cloud-node over tables in memory, with an EC2 in memory. Also with calls that run twice, at once, lose a race or are
 * killed half-way.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryCloud } from '../../demo/ec2/cloud.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { cloudStore } from '../../shared/fleet/instances/watch-list-store.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type ControlledFleet, controlledFleet, type FleetOptions } from '../../test/support/controlled-fleet.ts';
import { dyingStore } from '../../test/support/failing-store.ts';

const ID = 'i-0123456789abcdef0';
const PROVIDER_ID = `aws:///eu-central-1a/${ID}`;
const HOUR_MS = 3_600_000;
const UNINITIALISED: Taint = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};

interface Given extends Omit<FleetOptions, 'hasCloud'> {
  readonly providerID?: string;
  readonly taints?: Taint[];
  readonly ready?: 'True' | 'False' | 'Unknown';
  readonly launchedAgoMs?: number;
  readonly annotations?: Record<string, string>;
}

/** One node `vm` with a running instance, not Ready unless stated otherwise, all stream records processed; at 600 s. */
async function started(given: Given = {}): Promise<{ fleet: ControlledFleet; cloud: MemoryCloud }> {
  const fleet = controlledFleet({ ...given, hasCloud: true });
  const { cloud } = fleet;
  cloud.put({
    instanceId: ID,
    zone: 'eu-central-1a',
    instanceType: 'm5.large',
    launchedAtMs: fleet.nowMs() - (given.launchedAgoMs ?? HOUR_MS),
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  });
  await fleet.register('vm', {
    providerID: given.providerID ?? PROVIDER_ID,
    ...(given.taints === undefined ? {} : { taints: given.taints }),
  });
  if (given.annotations !== undefined) {
    await fleet.changeNode('vm', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: given.annotations! },
    }));
  }
  fleet.at(600);
  await fleet.post('vm', given.ready ?? 'False');
  await fleet.streams();
  return { fleet, cloud };
}

const rows = (fleet: ControlledFleet) => cloudStore(fleet.tables).read();
const tick = async (fleet: ControlledFleet, seconds: number) => {
  fleet.at(seconds);
  const report = await fleet.controllers.tickCloudNode(fleet.slot());
  await fleet.streams();
  return report;
};
const deletions = async (fleet: ControlledFleet) =>
  (await fleet.events('DeletingNode')).map((event) => [
    event['count'],
    (event['involvedObject'] as { name: string }).name,
  ]);

describe('the list of nodes that EC2 is asked about', () => {
  it('adds a node that is not Ready and removes it once it is Ready', async () => {
    const { fleet } = await started({ ready: 'True' });
    expect(await rows(fleet)).toEqual([]);
    await fleet.post('vm', 'False');
    await fleet.streams();
    expect(await rows(fleet)).toMatchObject([{ nodeName: 'vm', ready: 'False', providerId: PROVIDER_ID }]);
    await fleet.post('vm');
    await fleet.streams();
    expect(await rows(fleet)).toEqual([]);
  });

  it.each([[''], ['k3s://vm'], ['gce://project/zone/vm']])(
    'never adds an edge machine (providerID %j), and sends no request',
    async (providerID) => {
      const { fleet, cloud } = await started({ providerID });
      expect(await rows(fleet)).toEqual([]);
      expect(await tick(fleet, 605)).toMatchObject({ kind: 'ran', watched: 0 });
      expect(cloud.calls().describeInstances).toBe(0);
    },
  );

  it('costs a quiet tick half a read unit and no write', async () => {
    const { fleet } = await started({ ready: 'True' });
    fleet.consumed();
    await tick(fleet, 605);
    expect(fleet.consumed()).toMatchObject({ readUnits: 0.5, writeUnits: 0 });
  });

  it('drops the answers about a Node that was deleted and created again under its name', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    await tick(fleet, 605);
    expect((await rows(fleet))[0]?.seen.memory.notFoundSinceMs).toBeDefined();
    await fleet.removeNode('vm');
    await fleet.register('vm', { providerID: PROVIDER_ID });
    await fleet.post('vm', 'False');
    await fleet.streams();
    expect((await rows(fleet))[0]?.seen).toEqual({ memory: {} });
    // Made anew it is young, whatever the one before was.
    await tick(fleet, 610);
    await tick(fleet, 615);
    expect(await fleet.node('vm')).toBeDefined();
  });

  it('drops the row of a Node that was deleted through the API', async () => {
    const { fleet } = await started();
    await fleet.removeNode('vm');
    await fleet.streams();
    expect(await rows(fleet)).toEqual([]);
  });

  it('is compared with the Nodes at intervals: a lost record has no longer effect than that', async () => {
    const { fleet } = await started();
    const [row] = await rows(fleet);
    await fleet.post('vm');
    await fleet.streams();
    await cloudStore(fleet.tables).watch(row!, row!.resourceVersion);
    for (let seconds = 605; seconds <= 1_205; seconds += 5) await tick(fleet, seconds);
    expect(await rows(fleet)).toEqual([]);
  });

  it('writes nothing on ticks without a new answer', async () => {
    const { fleet } = await started();
    await tick(fleet, 605);
    fleet.consumed();
    await tick(fleet, 610);
    // The claim.
    expect(fleet.consumed()).toMatchObject({ writeUnits: 1 });
  });
});

describe('a node with an instance that', () => {
  it('is terminated is deleted at once, with its Lease and its digest, and with one event', async () => {
    const { fleet, cloud } = await started();
    cloud.terminate(ID);
    expect(await tick(fleet, 605)).toEqual({ kind: 'ran', watched: 1, processed: 1, deleted: 1 });
    expect(await fleet.node('vm')).toBeUndefined();
    expect(await fleet.health('vm')).toBeUndefined();
    expect(await rows(fleet)).toEqual([]);
    expect(await deletions(fleet)).toEqual([[1, 'vm']]);
    expect((await fleet.events('RemovingNode')).length).toBe(1);
  });

  it('is terminated is checked as soon as EventBridge reports it', async () => {
    const { fleet, cloud } = await started();
    cloud.terminate(ID);
    fleet.at(601);
    expect(await fleet.controllers.onInstanceChange('i-00000000000000000')).toMatchObject({ processed: 0 });
    expect(cloud.calls().describeInstances).toBe(0);
    expect(await fleet.controllers.onInstanceChange(ID)).toMatchObject({ processed: 1, deleted: 1 });
    expect(await fleet.node('vm')).toBeUndefined();
  });

  it('is reported as terminated by an event, but runs according to EC2, is kept', async () => {
    const { fleet } = await started();
    await tick(fleet, 605);
    const { comparedMs } = (await rows(fleet))[0]!.seen;
    fleet.at(606);
    expect(await fleet.controllers.onInstanceChange(ID)).toMatchObject({ processed: 1, deleted: 0 });
    expect(await fleet.node('vm')).toBeDefined();
    // Its Node is compared with its row by ticks only.
    expect([comparedMs, (await rows(fleet))[0]!.seen.comparedMs]).toEqual([fleet.nowMs() - 1_000, comparedMs]);
  });

  it('is unknown is deleted at the second answer in a row, not the first', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    expect(await tick(fleet, 605)).toMatchObject({ deleted: 0 });
    expect(await tick(fleet, 610)).toMatchObject({ deleted: 1 });
  });

  it('is unknown twice within a period is kept, however long the tick ran before the request', async () => {
    let slow: (() => void) | undefined;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      async query(request) {
        const page = await items.query(request);
        if (request.pk === 'cloud') slow?.();
        return page;
      },
    });
    const { fleet, cloud } = await started({ between });
    cloud.vanish(ID);
    slow = () => fleet.at(608);
    await tick(fleet, 605);
    slow = undefined;
    expect(await tick(fleet, 610)).toMatchObject({ deleted: 0 });
    expect(await tick(fleet, 615)).toMatchObject({ deleted: 1 });
  });

  it('is unknown, with a providerID without a zone, is kept: it may be in another region', async () => {
    const { fleet, cloud } = await started({ providerID: ID });
    cloud.vanish(ID);
    for (const seconds of [605, 610, 615]) await tick(fleet, seconds);
    expect(await fleet.node('vm')).toBeDefined();
    expect(await fleet.events('CloudCheckFailed')).toHaveLength(1);
    cloud.start(ID);
    cloud.terminate(ID);
    await tick(fleet, 620);
    expect(await fleet.node('vm')).toBeUndefined();
  });

  it('is unknown twice with an error between is kept', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    await tick(fleet, 605);
    cloud.fail('InternalError', { calls: 1 });
    await tick(fleet, 610);
    expect(await tick(fleet, 615)).toMatchObject({ deleted: 0 });
    expect(await tick(fleet, 620)).toMatchObject({ deleted: 1 });
  });

  it('was unknown before a controller outage needs two more answers', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    await tick(fleet, 605);
    // 15 s is three polls: still in a row.
    expect(await tick(fleet, 625)).toMatchObject({ deleted: 0 });
    expect(await tick(fleet, 640)).toMatchObject({ deleted: 1 });
  });

  it('is terminated stays while a finalizer delays its deletion', async () => {
    const { fleet, cloud } = await started();
    await fleet.changeNode('vm', (node) => ({ ...node, metadata: { ...node.metadata, finalizers: ['a.b/c'] } }));
    await fleet.streams();
    cloud.terminate(ID);
    for (const seconds of [605, 610, 615]) expect(await tick(fleet, seconds)).toMatchObject({ deleted: 0 });
    expect((await fleet.node('vm'))?.metadata.deletionTimestamp).toBeDefined();
    expect(await deletions(fleet)).toEqual([[1, 'vm']]);
    const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 100 });
    expect(decisions.map(({ record }) => [record.act, record.reason])).toContainEqual([
      'NodeKept',
      'EC2 instance state terminated: the Node is marked for deletion, which its finalizers delay',
    ]);
    expect(decisions.map(({ record }) => record.act)).not.toContain('NodeDeleted');
  });

  it('is stopped gets the shutdown taint, and loses it in the change that makes it Ready', async () => {
    const { fleet, cloud } = await started();
    cloud.stop(ID);
    await tick(fleet, 605);
    expect(await fleet.taints('vm')).toContain('shutdown:NoSchedule');
    await fleet.post('vm');
    await fleet.streams();
    expect(await fleet.taints('vm')).toEqual([]);
  });

  it.each([
    ['Throttling', 'throttled'],
    ['InternalError', 'error'],
    ['timeout', 'timeout'],
  ] as const)(
    'cannot be checked (%s) is kept without a time limit, reported once and counted by reason',
    async (trouble, state) => {
      const { fleet, cloud } = await started();
      cloud.terminate(ID);
      cloud.fail(trouble);
      for (let seconds = 605; seconds < 1_200; seconds += 5) await tick(fleet, seconds);
      expect(await fleet.node('vm')).toBeDefined();
      const events = await fleet.events('CloudCheckFailed');
      expect(events.map((event) => event['count'])).toEqual([1]);
      expect(String(events[0]?.['message'])).toContain(state);
      const answers = fleet.metrics.filter(({ name }) => name === 'cloud_answers_total');
      expect(answers).toHaveLength(119);
    },
  );

  it.each([
    ['of another region', 'aws:///eu-west-1a/i-0123456789abcdef0', /region eu-west-1/],
    ['that is none', 'aws:///eu-central-1a/vm-17', /does not end with an EC2 instance id/],
    ['of Fargate', 'aws:///eu-central-1a/fargate-ip-10-0-0-1', /Fargate/],
  ])('has a providerID %s is kept and reported once', async (_, providerID, message) => {
    const { fleet, cloud } = await started({ providerID });
    cloud.vanish(ID);
    for (let seconds = 605; seconds < 1_200; seconds += 5) await tick(fleet, seconds);
    expect(await fleet.node('vm')).toBeDefined();
    const events = await fleet.events('CloudCheckFailed');
    expect(events).toHaveLength(1);
    expect(events[0]?.['message']).toMatch(message);
    expect(cloud.calls().describeInstances).toBe(0);
  });

  it.each(['running', 'terminated'] as const)(
    'belongs to another account and is %s is kept and reported once',
    async (state) => {
      const { fleet, cloud } = await started();
      cloud.put({
        instanceId: ID,
        zone: 'eu-central-1a',
        instanceType: 'm5.large',
        launchedAtMs: 0,
        accountId: '999999999999',
        state,
      });
      for (let seconds = 605; seconds < 1_200; seconds += 5) await tick(fleet, seconds);
      expect(await fleet.node('vm')).toBeDefined();
      expect((await rows(fleet))[0]?.seen).toMatchObject({ memory: {}, state: 'foreign' });
      const events = await fleet.events('CloudCheckFailed');
      expect(events).toHaveLength(1);
      expect(events[0]?.['message']).toMatch(/another account's/);
    },
  );

  it('vanished with many others, more than one tick confirms, is deleted in a later tick', async () => {
    const { fleet, cloud } = await started();
    const others = Array.from({ length: 44 }, (_, index) => `vm-${index}`);
    for (const [index, name] of others.entries()) {
      const instanceId = `i-${String(index).padStart(17, '0')}`;
      const hidden = index < 22 ? { accountId: '999999999999' } : {};
      cloud.put({ instanceId, zone: 'eu-central-1a', instanceType: 'm5.large', launchedAtMs: 0, ...hidden });
      if (index >= 22) cloud.vanish(instanceId);
      await fleet.register(name, { providerID: `aws:///eu-central-1a/${instanceId}` });
    }
    cloud.vanish(ID);
    fleet.at(1_200);
    for (const name of others) await fleet.post(name, 'False');
    await fleet.streams();
    for (let seconds = 1_205; seconds <= 1_235; seconds += 5) await tick(fleet, seconds);
    expect(await fleet.node('vm')).toBeUndefined();
    for (const [index, name] of others.entries()) expect((await fleet.node(name)) !== undefined, name).toBe(index < 22);
  });

  it('has new addresses gets them on its Node, in one write', async () => {
    const { fleet } = await started();
    await tick(fleet, 605);
    expect((await fleet.node('vm'))?.status?.addresses).toEqual([{ type: 'InternalIP', address: '10.0.0.1' }]);
    const version = (await fleet.node('vm'))?.metadata.resourceVersion;
    await tick(fleet, 610);
    expect((await fleet.node('vm'))?.metadata.resourceVersion).toBe(version);
  });
});

describe('a node that is not initialised', () => {
  it('gets labels and addresses, loses the taint whatever its effect, and gets one Synced event', async () => {
    const { fleet } = await started({
      ready: 'True',
      taints: [UNINITIALISED, { ...UNINITIALISED, effect: 'NoExecute' }],
    });
    await tick(fleet, 605);
    const node = await fleet.node('vm');
    expect(await fleet.taints('vm')).toEqual([]);
    expect(node?.metadata.labels).toMatchObject({
      'node.kubernetes.io/instance-type': 'm5.large',
      'topology.kubernetes.io/zone': 'eu-central-1a',
      'topology.kubernetes.io/region': 'eu-central-1',
      'failure-domain.beta.kubernetes.io/zone': 'eu-central-1a',
    });
    expect(node?.status?.addresses).toEqual([{ type: 'InternalIP', address: '10.0.0.1' }]);
    expect((await fleet.events('Synced')).map((event) => event['count'])).toEqual([1]);
    expect(await rows(fleet)).toEqual([]);
  });

  it.each([
    ['it has no providerID', { providerID: '' }, /no providerID/],
    [
      'its provided address does not belong to the instance',
      { annotations: { 'alpha.kubernetes.io/provided-node-ip': '10.0.0.9' } },
      /10\.0\.0\.9 is not among/,
    ],
  ] as const)('keeps its taint while %s, and reports the reason once', async (_, given, message) => {
    const { fleet } = await started({ ready: 'True', taints: [UNINITIALISED], ...given });
    for (let seconds = 605; seconds < 800; seconds += 5) await tick(fleet, seconds);
    expect(await fleet.taints('vm')).toEqual(['uninitialized:NoSchedule']);
    const events = await fleet.events('InitializationFailed');
    expect(events).toHaveLength(1);
    expect(events[0]?.['message']).toMatch(message);
    expect(await fleet.events('CloudCheckFailed')).toEqual([]);
  });

  it('waits while its instance is too young for EC2', async () => {
    const { fleet, cloud } = await started({ ready: 'True', taints: [UNINITIALISED], launchedAgoMs: -606_000 });
    cloud.setAnswerDelay(10_000);
    await tick(fleet, 610);
    expect(await fleet.taints('vm')).toEqual(['uninitialized:NoSchedule']);
    await tick(fleet, 620);
    expect(await fleet.taints('vm')).toEqual([]);
  });
});

describe('with concurrent, repeated or killed calls cloud-node', () => {
  it('deletes once when the same tick runs twice, two run at once, and an event arrives', async () => {
    const { fleet, cloud } = await started();
    cloud.terminate(ID);
    fleet.at(605);
    const reports = await Promise.all([
      fleet.controllers.tickCloudNode(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickCloudNode(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickCloudNode(fleet.slot() + 1),
      fleet.controllers.onInstanceChange(ID),
    ]);
    await fleet.controllers.tickCloudNode(fleet.slot());
    await fleet.streams();
    expect(reports.reduce((sum, report) => sum + (report.kind === 'ran' ? report.deleted : 0), 0)).toBe(1);
    expect(await deletions(fleet)).toEqual([[1, 'vm']]);
  });

  it('does not count two answers of one moment as two that are a period apart', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    fleet.at(605);
    await fleet.controllers.tickCloudNode(fleet.slot());
    await fleet.controllers.onInstanceChange(ID);
    await fleet.controllers.onInstanceChange(ID);
    expect(await fleet.node('vm')).toBeDefined();
  });

  /** The tables, with a callback before the first transaction. */
  const beforeCommit = (items: ItemStore, what: () => Promise<unknown>): ItemStore => {
    let once = true;
    return {
      ...items,
      async transact(writes) {
        if (once) {
          once = false;
          await what();
        }
        return items.transact(writes);
      },
    };
  };

  it('keeps a node that becomes Ready while it is about to be deleted', async () => {
    const { fleet, cloud } = await started();
    cloud.terminate(ID);
    fleet.at(605);
    const racing = fleet.makeControllers(beforeCommit(fleet.tables, () => fleet.post('vm')));
    expect(await racing.tickCloudNode(fleet.slot())).toMatchObject({ deleted: 0 });
    expect(await fleet.node('vm')).toBeDefined();
    expect(await fleet.events('DeletingNode')).toEqual([]);
  });

  it('does not delete on two answers with another one in between', async () => {
    const { fleet, cloud } = await started();
    cloud.vanish(ID);
    await tick(fleet, 605);
    fleet.at(610);
    const racing = fleet.makeControllers(
      beforeCommit(fleet.tables, async () => {
        cloud.start(ID);
        await fleet.controllers.onInstanceChange(ID);
      }),
    );
    expect(await racing.tickCloudNode(fleet.slot())).toMatchObject({ deleted: 0 });
    expect(await fleet.node('vm')).toBeDefined();
    expect((await rows(fleet))[0]?.seen.state).toBe('running');
  });

  it('does not remove a row that was updated meanwhile', async () => {
    const { fleet } = await started();
    const [row] = await rows(fleet);
    await fleet.changeNode('vm', (node) => ({ ...node, metadata: { ...node.metadata, labels: { a: 'b' } } }));
    await fleet.streams();
    await cloudStore(fleet.tables).drop(row!);
    expect(await rows(fleet)).toHaveLength(1);
  });

  it.each([false, true])('has the same result wherever it was killed (last write done: %s)', async (happens) => {
    for (const what of ['terminate', 'vanish', 'stop'] as const) {
      const counting = await started();
      counting.cloud[what](ID);
      await tick(counting.fleet, 605);
      counting.fleet.at(610);
      const alive = dyingStore(counting.fleet.tables, Number.POSITIVE_INFINITY, false);
      await counting.fleet.makeControllers(alive.items).tickCloudNode(counting.fleet.slot());
      for (let atCall = 1; atCall <= Math.max(12, alive.calls()); atCall += 1) {
        const { fleet, cloud } = await started();
        cloud[what](ID);
        for (const seconds of [605, 610]) {
          fleet.at(seconds);
          await fleet
            .makeControllers(dyingStore(fleet.tables, atCall, happens).items)
            .tickCloudNode(fleet.slot())
            .catch(() => 'killed');
        }
        await fleet.streams();
        await tick(fleet, 615);
        await tick(fleet, 620);
        if (what === 'stop') expect(await fleet.taints('vm')).toContain('shutdown:NoSchedule');
        else {
          expect(await fleet.node('vm')).toBeUndefined();
          expect(await deletions(fleet)).toEqual([[1, 'vm']]);
        }
      }
    }
  });

  it('reports that a deletion failed, and deletes at the next tick', async () => {
    const { fleet, cloud } = await started();
    cloud.terminate(ID);
    fleet.at(605);
    const failing = fleet.makeControllers({
      ...fleet.tables,
      transact: async (writes) =>
        writes.some(({ kind, key }) => kind === 'delete' && key.table === 'health')
          ? { kind: 'contended' }
          : fleet.tables.transact(writes),
    });
    await expect(failing.tickCloudNode(fleet.slot())).rejects.toThrow('could not finish');
    expect(await fleet.events('DeletingNodeFailed')).toHaveLength(1);
    expect(await tick(fleet, 610)).toMatchObject({ deleted: 1 });
  });
});
