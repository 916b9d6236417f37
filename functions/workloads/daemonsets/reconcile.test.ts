import { describe, expect, it } from 'vitest';
import { replay } from '../../../cli/replay.ts';
import { shardsOf } from '../../../shared/kinds/resources.ts';
import { earliestRows } from '../../../shared/ticks/due-rows.ts';
import { type DaemonCluster, daemonCluster, namesOf } from '../../../test/support/daemon-cluster.ts';
import { targetNodeOf } from './placement.rule.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';

/** Names of the nodes that pods, not being deleted, were made for. */
const targets = async (cluster: DaemonCluster) => [...(await cluster.targets()).keys()].sort();

describe('the nodes of a DaemonSet', () => {
  it('WS-01 get one pod each, which the scheduler binds', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(5);
    await cluster.createDaemonSet();
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
    const [pod] = await cluster.pods();
    const [revision] = await cluster.list('controllerrevisions');
    const hash = revision?.metadata.labels?.['controller-revision-hash'];
    expect(revision).toMatchObject({ metadata: { name: `agent-${hash}` }, revision: 1 });
    // The bytes of a Go client: sorted, and with the members that Go always writes.
    expect(JSON.stringify(revision?.['data'])).toMatch(
      /^\{"spec":\{"template":\{"\$patch":"replace","metadata":\{"creationTimestamp":null,"labels":\{.*"resources":\{\}/,
    );
    expect(pod?.spec?.nodeName).toBeUndefined();
    expect(pod).toMatchObject({
      metadata: {
        labels: { app: 'agent', 'controller-revision-hash': hash },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', controller: true }],
      },
      spec: { tolerations: expect.arrayContaining([{ key: NOT_READY, operator: 'Exists', effect: 'NoExecute' }]) },
    });
    expect(pod?.spec?.tolerations?.some(({ tolerationSeconds }) => tolerationSeconds !== undefined)).toBe(false);
    expect((await cluster.set()).status).toMatchObject({ desiredNumberScheduled: 5, currentNumberScheduled: 5 });
    expect(await cluster.events('SuccessfulCreate')).toHaveLength(5);
  });

  it('WS-03 get none while they are not Ready, and keep the one they have', async () => {
    const cluster = daemonCluster();
    const taints = [
      { key: NOT_READY, effect: 'NoExecute' as const },
      { key: NOT_READY, effect: 'NoSchedule' as const },
    ];
    await cluster.createNode('new', { taints });
    await cluster.createNode('old');
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    expect(await targets(cluster)).toEqual(['old']);
    await cluster.setTaints('old', taints);
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['old']);
    expect((await cluster.set()).status).toMatchObject({ desiredNumberScheduled: 0, numberMisscheduled: 1 });
    await cluster.setTaints('new', []);
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['new', 'old']);
  });

  it('keep the one they have while they are flapping, and get another one when it is deleted', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    for (const name of ['n0', 'n1']) {
      await cluster.setTaints(name, [{ key: 'nodekeeper.dev/flapping', effect: 'NoSchedule' }]);
    }
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0', 'n1']);
    const [pod] = (await cluster.targets()).get('n0') ?? [];
    await cluster.remove('pods', pod?.metadata.name ?? '');
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0', 'n1']);
  });

  it('WS-05 get one although they are cordoned', async () => {
    const cluster = daemonCluster();
    await cluster.createNode('n', {
      unschedulable: true,
      taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }],
    });
    await cluster.createDaemonSet();
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n']);
  });

  it.each([true, false])('WS-07 get one without a network only on the host network: %s', async (hostNetwork) => {
    const cluster = daemonCluster();
    const taints = [{ key: 'node.kubernetes.io/network-unavailable', effect: 'NoSchedule' as const }];
    await cluster.createNode('n', { taints });
    await cluster.createDaemonSet({}, { hostNetwork });
    await cluster.settle();
    expect(await targets(cluster)).toEqual(hostNetwork ? ['n'] : []);
  });

  it('are tried again a minute after a pod was refused', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    const hard = { pods: '0' };
    const quota = { kind: 'ResourceQuota', metadata: { name: 'none' }, spec: { hard } };
    await cluster.create('resourcequotas', { ...quota, status: { hard, used: hard } });
    await cluster.createDaemonSet();
    await cluster.settle();
    expect([await targets(cluster), (await cluster.events('FailedCreate')).length]).toEqual([[], 1]);
    const { rows } = await earliestRows(cluster.tables);
    const due = rows.filter(({ key }) => key.kind === 'workload' && key.ref.resource === 'daemonsets');
    expect(due.map(({ atMs }) => atMs)).toEqual([cluster.now() + 60_000]);
  });

  it('get one although admission refuses that of the first', async () => {
    const refused = { kind: 'refused', message: 'not there', retryMs: 60_000 } as const;
    const cluster = daemonCluster({
      admitObjects: async (_owner, _of, pods) => ({
        kind: 'decided',
        objects: pods.map((each) => (targetNodeOf(each.object) === 'n0' ? refused : each)),
      }),
    });
    await cluster.createNodes(3);
    await cluster.createDaemonSet();
    await cluster.settle();
    expect(await targets(cluster)).toEqual([]);
    for (let minute = 0; minute < 2; minute += 1) {
      cluster.advance(60_000);
      await cluster.tick();
      await cluster.settle();
    }
    expect(await targets(cluster)).toEqual(['n1', 'n2']);
  });

  it('WS-09 lose it to a NoExecute taint that it does not tolerate', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    await cluster.setTaints('n0', [{ key: 'maintenance', effect: 'NoExecute' }]);
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n1']);
    expect(await cluster.events('SuccessfulDelete')).toHaveLength(1);
  });

  it('WS-11 are those with the labels of the node selector', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(4);
    for (const name of ['b0', 'b1', 'b2']) await cluster.createNode(name, {}, { color: 'blue' });
    await cluster.createDaemonSet({}, { nodeSelector: { color: 'blue' } });
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['b0', 'b1', 'b2']);
    expect((await cluster.set()).status?.desiredNumberScheduled).toBe(3);
    await cluster.change('nodes', 'n0', (node) => ({
      ...node,
      metadata: { ...node.metadata, labels: { color: 'blue' } },
    }));
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['b0', 'b1', 'b2', 'n0']);
  });

  it('WS-13 are the one that the template names', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(5);
    await cluster.createDaemonSet({}, { nodeName: 'n0' });
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0']);
  });

  it('WS-15 get one although it does not fit', async () => {
    const cluster = daemonCluster();
    await cluster.createNode('full', {}, {}, { cpu: '1' });
    const containers = [{ name: 'c', image: 'i', resources: { requests: { cpu: '2' } } }];
    await cluster.createDaemonSet({}, { containers });
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['full']);
    expect((await cluster.set()).status?.desiredNumberScheduled).toBe(1);
  });

  it('WS-23 leave no unbound pod behind when they are deleted', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet();
    await cluster.settle();
    await cluster.remove('nodes', 'n1');
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0']);
  });

  it('are read once for all DaemonSets that a change of a node concerns', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    for (const name of ['agent', 'logs', 'metrics']) await cluster.createDaemonSet({}, {}, name);
    await cluster.settle();
    let reads = 0;
    const controllers = cluster.makeControllers({
      ...cluster.tables,
      query(asked) {
        if (asked.pk.startsWith('o#nodes')) reads += 1;
        return cluster.tables.query(asked);
      },
    });
    await cluster.createNode('late');
    const { faults } = await controllers.onWorkloadRecords(await cluster.records());
    expect(faults).toEqual([]);
    expect((await cluster.targets()).get('late')).toHaveLength(3);
    expect(reads, 'one query per shard of the Nodes').toBe(shardsOf('nodes'));
  });

  it('start no sync when their status changes, and none that changes nothing for the DaemonSet', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    await cluster.change('nodes', 'n0', (node) => ({
      ...node,
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    }));
    expect(await cluster.records()).toEqual([]);
    const before = cluster.tables.changes('objects', 0).length;
    await cluster.setTaints('n0', [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }]);
    await cluster.settle();
    // The node alone: object, head and log.
    const written = cluster.tables.changes('objects', 0).slice(before);
    expect(new Set(written.map(({ key }) => key.pk.split('#')[1]))).toEqual(new Set(['nodes']));
  });
});

describe('the pods of one node', () => {
  it('WS-17 are reduced to the bound one, then the oldest', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settle();
    const [made] = await cluster.pods();
    for (const [name, nodeName] of [
      ['second', 'n0'],
      ['third', undefined],
    ] as const) {
      const { resourceVersion: _rv, uid: _uid, creationTimestamp: _at, ...metadata } = made!.metadata;
      await cluster.create('pods', {
        ...made,
        metadata: { ...metadata, name },
        spec: { ...made?.spec, ...(nodeName === undefined ? {} : { nodeName }) },
      });
    }
    await cluster.settle();
    expect(namesOf(await cluster.pods())).toEqual(['second']);
  });

  it('WS-19 are deleted when they fail, with a wait that doubles', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settle();
    await cluster.failPods();
    await cluster.settle();
    expect(await cluster.events('FailedDaemonPod')).toHaveLength(1);
    const failed = async () => (await cluster.pods()).filter(({ status }) => status?.phase === 'Failed').length;
    expect(await failed()).toBe(0);
    for (const seconds of [1, 2, 4]) {
      await cluster.failPods();
      cluster.advance(seconds * 1_000 - 1);
      await cluster.settle();
      expect(await failed()).toBe(1);
      cluster.advance(1_001);
      await cluster.tick();
      await cluster.settle();
      expect(await failed()).toBe(0);
      expect(await cluster.pods()).toHaveLength(1);
    }
  });

  it('WS-21 include one that is being deleted: no other is made before it has ended', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    const [pod] = await cluster.pods();
    const name = pod?.metadata.name ?? '';
    await cluster.markPod(name);
    await cluster.settle();
    expect(await cluster.list('pods')).toHaveLength(1);
    await cluster.remove('pods', name);
    await cluster.settle();
    expect(await targets(cluster)).toEqual(['n0']);
  });
});

describe('a rolling update', () => {
  const updated = async (cluster: DaemonCluster, image: string) =>
    (await cluster.pods()).filter(({ spec }) => spec?.containers?.[0]?.image === image).length;

  it('WS-25 replaces maxUnavailable pods at a time', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(5);
    await cluster.createDaemonSet({ updateStrategy: rolling({ maxUnavailable: 2 }) });
    await cluster.settleRunning();
    await cluster.setImage('v2');
    for (const replaced of [2, 4, 5]) {
      await cluster.settleDeleted();
      expect(await updated(cluster, 'v2')).toBe(replaced);
      expect(await cluster.pods()).toHaveLength(5);
      await cluster.runOnTargets();
    }
    await cluster.settle();
    const { status } = await cluster.set();
    expect(status).toMatchObject({ updatedNumberScheduled: 5, numberAvailable: 5, observedGeneration: 2 });
    expect(status?.numberUnavailable).toBeUndefined();
  });

  it('WS-27 replaces pods that are not Ready beyond the limit', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(5);
    await cluster.createDaemonSet({ updateStrategy: rolling({ maxUnavailable: 3 }) });
    await cluster.settle();
    await cluster.setImage('v2');
    await cluster.settleDeleted();
    expect(await updated(cluster, 'v2')).toBe(5);
  });

  it('WS-33 with a surge deletes the old pod when the new one is available', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet({
      minReadySeconds: 15,
      updateStrategy: rolling({ maxSurge: 1, maxUnavailable: 0 }),
    });
    await cluster.settle();
    await cluster.runOnTargets();
    cluster.advance(20_000);
    await cluster.settle();
    await cluster.setImage('v2');
    await cluster.settle();
    await cluster.runOnTargets();
    cluster.advance(10_000);
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(2);
    cluster.advance(10_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(1);
    expect(await updated(cluster, 'v2')).toBe(1);
  });

  it('does not replace pods of OnDelete before they are deleted', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet({ updateStrategy: { type: 'OnDelete' } });
    await cluster.settleRunning();
    await cluster.setImage('v2');
    await cluster.settle();
    expect(await updated(cluster, 'v2')).toBe(0);
    await cluster.remove('pods', (await cluster.pods())[0]?.metadata.name ?? '');
    await cluster.settle();
    expect(await updated(cluster, 'v2')).toBe(1);
  });

  it('replaces nothing while the gate is closed, and resumes when it opens', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    cluster.stopTicks();
    cluster.advance(600_000);
    await cluster.setImage('v2');
    await cluster.settleDeleted();
    expect(await updated(cluster, 'v2')).toBe(0);
    cluster.startTicks();
    cluster.advance(10_000);
    await cluster.tick();
    await cluster.settleDeleted();
    expect(await updated(cluster, 'v2')).toBe(1);
  });

  it('WS-35 renumbers the revision of a template that is current again', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settle();
    const revisions = async () =>
      (await cluster.list('controllerrevisions')).map((each) => [each.metadata.name, each['revision']]);
    const [[first]] = (await revisions()) as [[string, number]];
    await cluster.setImage('v2');
    await cluster.settleDeleted();
    await cluster.setImage('v1');
    await cluster.settleDeleted();
    expect(await revisions()).toHaveLength(2);
    expect(await revisions()).toContainEqual([first, 3]);
  });

  it('keeps as many old revisions as the limit says, and those that a pod has', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet({ revisionHistoryLimit: 1 });
    await cluster.settleRunning();
    for (const image of ['v2', 'v3', 'v4']) {
      await cluster.setImage(image);
      await cluster.settleDeleted();
      await cluster.runOnTargets();
      await cluster.settle();
    }
    expect((await cluster.list('controllerrevisions')).map((each) => each['revision']).sort()).toEqual([3, 4]);
  });
});

const rolling = (limits: { maxSurge?: number; maxUnavailable?: number }) => ({
  type: 'RollingUpdate' as const,
  rollingUpdate: { maxSurge: 0, maxUnavailable: 1, ...limits },
});

describe('a DaemonSet', () => {
  it.each([1, 20])('adopts the pods and revisions that one without its pods left behind: %i', async (nodes) => {
    const cluster = daemonCluster();
    await cluster.createNodes(nodes);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    const before = namesOf(await cluster.pods());
    for (const resource of ['pods', 'controllerrevisions']) {
      for (const name of namesOf(await cluster.list(resource))) {
        await cluster.change(resource, name, ({ metadata: { ownerReferences: _owners, ...metadata }, ...rest }) => ({
          ...rest,
          metadata,
        }));
      }
    }
    await cluster.remove('daemonsets', 'agent');
    await cluster.createDaemonSet();
    await cluster.settle();
    expect(namesOf(await cluster.pods())).toEqual(before);
    expect(await cluster.list('controllerrevisions')).toHaveLength(1);
    expect((await cluster.list('controllerrevisions'))[0]?.metadata.ownerReferences).toHaveLength(1);
  });

  it('leaves its objects to the garbage collector when it is deleted', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(2);
    await cluster.createDaemonSet();
    await cluster.settle();
    await cluster.remove('daemonsets', 'agent');
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    expect(await cluster.list('controllerrevisions')).toEqual([]);
  });

  it('is repaired by the sweep when the record of a node was lost, and otherwise left alone', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    await cluster.tick();
    cluster.advance(900_000);
    expect(await cluster.tick()).toMatchObject({ swept: 0 });
    await cluster.createNode('late');
    await cluster.records();
    cluster.advance(900_000);
    expect(await cluster.tick()).toMatchObject({ swept: 1 });
    expect(await targets(cluster)).toEqual(['late', 'n0']);
  });

  it('gets pods for a node at its due time after the record of the node failed', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    await cluster.tick();
    await cluster.createNode('late');
    const failing = cluster.makeControllers({
      ...cluster.tables,
      query: async (query) => {
        if (query.pk.startsWith('o#daemonsets')) throw new Error('the table does not answer');
        return cluster.tables.query(query);
      },
    });
    expect((await failing.onWorkloadRecords(await cluster.records())).postponed).toHaveLength(1);
    const due = async () =>
      (await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true })).items
        .map(({ sk }) => String(sk))
        .filter((sk) => sk.endsWith('#daemonSets'));
    expect(await due()).toHaveLength(1);
    expect(await targets(cluster)).toEqual(['n0']);
    cluster.advance(60_000);
    expect(await cluster.tick()).toMatchObject({ due: 1 });
    expect(await targets(cluster)).toEqual(['late', 'n0']);
    expect(await due()).toEqual([]);
  });

  it('records decisions that replay to the same', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(3);
    await cluster.createDaemonSet();
    await cluster.settleRunning();
    await cluster.setTaints('n0', [{ key: 'maintenance', effect: 'NoExecute' }]);
    await cluster.settle();
    await cluster.setImage('v2');
    await cluster.settleDeleted();
    const decisions = await cluster.decisions();
    expect(new Set(decisions.map(({ rule }) => rule))).toEqual(new Set(['daemonNodes', 'daemonRollout']));
    expect(decisions.filter((record) => !replay(record).same)).toEqual([]);
  });
});
