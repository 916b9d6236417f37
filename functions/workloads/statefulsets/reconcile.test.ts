import { describe, expect, it } from 'vitest';
import { replay } from '../../../cli/replay.ts';
import { type StatefulCluster, statefulCluster } from '../../../test/support/stateful-cluster.ts';
import { decideStatefulSet } from './rule.ts';

/** A set of three healthy pods. */
async function running(spec: Parameters<StatefulCluster['createStatefulSet']>[0] = {}): Promise<StatefulCluster> {
  const cluster = statefulCluster();
  await cluster.createStatefulSet(spec);
  await cluster.settleRunning();
  return cluster;
}
const revisionsOf = async (cluster: StatefulCluster) =>
  (await cluster.list('controllerrevisions')).map((each) => each['revision']).sort();

describe('the pods of a StatefulSet', () => {
  it('WT-01 are created one after the other, each when the former is ready', async () => {
    const cluster = statefulCluster();
    await cluster.createStatefulSet();
    for (const names of [['web-0'], ['web-0', 'web-1'], ['web-0', 'web-1', 'web-2']]) {
      await cluster.settle();
      expect(await cluster.names()).toEqual(names);
      await cluster.runPod(names.at(-1) ?? '');
    }
    await cluster.settle();
    const [pod] = await cluster.pods();
    const [revision] = await cluster.list('controllerrevisions');
    expect(pod).toMatchObject({
      metadata: {
        generateName: 'web-',
        labels: {
          app: 'web',
          'statefulset.kubernetes.io/pod-name': 'web-0',
          'apps.kubernetes.io/pod-index': '0',
          'controller-revision-hash': revision?.metadata.name,
        },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', controller: true }],
      },
      spec: { hostname: 'web-0', subdomain: 'web' },
    });
    const name = revision?.metadata.name;
    expect((await cluster.set()).status).toEqual({
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      currentRevision: name,
      updateRevision: name,
      observedGeneration: 1,
      collisionCount: 0,
    });
    expect(await cluster.events('SuccessfulCreate')).toContain('create Pod web-0 in StatefulSet web successful');
  });

  it('are created in parts if the set wants more pods than memory can hold', async () => {
    const ordered = statefulCluster();
    await ordered.createStatefulSet({ replicas: 2 ** 31 - 1 });
    await ordered.settle();
    expect(await ordered.names()).toEqual(['web-0']);
    const rules = { replicas: 2 ** 31 - 1, start: 0, currentRevision: 'a', updateRevision: 'a' };
    const rollingUpdate = { partition: 0, maxUnavailable: '1%' };
    const { create, replace } = decideStatefulSet({ ...rules, isParallel: true, rollingUpdate }, []);
    expect({ created: create.length, replace }).toEqual({ created: 500, replace: [] });
  });

  it('WT-03 wait for one that runs and is not ready', async () => {
    const cluster = statefulCluster();
    await cluster.createStatefulSet();
    await cluster.settle();
    await cluster.runPod('web-0', { ready: false });
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0']);
  });

  it('WT-05 are not reduced while a lower one is not healthy', async () => {
    const cluster = await running();
    await cluster.runPod('web-0', { ready: false });
    await cluster.changeSpec({ replicas: 2 });
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(3);
    await cluster.runPod('web-0');
    await cluster.settle();
    expect((await cluster.pods()).map(({ metadata }) => metadata.name)).toEqual(['web-0', 'web-1']);
    expect(await cluster.events('SuccessfulDelete')).toEqual(['delete Pod web-2 in StatefulSet web successful']);
  });

  it('WT-07 are made again with the same name and labels', async () => {
    const cluster = await running();
    const [, before] = await cluster.pods();
    await cluster.remove('pods', 'web-1');
    await cluster.settle();
    const [, after] = await cluster.pods();
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
    expect(after?.metadata).toMatchObject({ name: 'web-1', labels: before?.metadata.labels });
  });

  it('WT-09 are never made twice: one that is being deleted on a silent node keeps its name', async () => {
    const cluster = await running();
    await cluster.create('nodes', {
      kind: 'Node',
      metadata: { name: 'node-of-web-1' },
      status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
    });
    const uid = (await cluster.pods())[1]?.metadata.uid;
    await cluster.markPod('web-1');
    for (let minute = 0; minute < 59; minute += 1) {
      await cluster.settle();
      cluster.advance(60_000);
      await cluster.tick();
    }
    expect(await cluster.names()).toEqual(['web-0', 'web-1', 'web-2']);
    expect((await cluster.list('pods'))[1]?.metadata.uid).toBe(uid);
    expect((await cluster.decisions()).filter(({ act }) => act === 'StatefulPodAwaited')).toHaveLength(1);
    expect(await cluster.events('StatefulPodAwaited')).toHaveLength(1);
    expect(await cluster.events('SuccessfulDelete')).toEqual([]);
  });

  it('WT-11 are made again when a person removed the object of the silent one', async () => {
    const cluster = await running();
    await cluster.markPod('web-1');
    await cluster.settle();
    await cluster.remove('pods', 'web-1');
    await cluster.settle();
    expect((await cluster.pods()).map(({ metadata }) => metadata.name)).toEqual(['web-0', 'web-1', 'web-2']);
  });

  it('are deleted when they ended, and made again when they are removed', async () => {
    const cluster = await running();
    await cluster.runPod('web-1', { phase: 'Succeeded', ready: false });
    await cluster.settle();
    expect(await cluster.events('SuccessfulDelete')).toEqual(['delete Pod web-1 in StatefulSet web successful']);
    await cluster.settleRunning();
    expect((await cluster.pods()).map(({ status }) => status?.phase)).toEqual(['Running', 'Running', 'Running']);
  });

  it('WT-21 have ordinals from spec.ordinals.start; others are deleted last', async () => {
    const cluster = await running({ replicas: 1 });
    await cluster.changeSpec({ replicas: 2, ordinals: { start: 5 } });
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0', 'web-5']);
    await cluster.runPod('web-5');
    await cluster.settle();
    await cluster.runPod('web-6');
    await cluster.settleRunning();
    expect(await cluster.names()).toEqual(['web-5', 'web-6']);
  });

  it('are created and deleted at once with the policy Parallel', async () => {
    const cluster = statefulCluster();
    await cluster.createStatefulSet({ podManagementPolicy: 'Parallel' });
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0', 'web-1', 'web-2']);
    await cluster.changeSpec({ replicas: 1 });
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(1);
  });

  it('count as available after minReadySeconds, and the next waits for that', async () => {
    const cluster = statefulCluster();
    await cluster.createStatefulSet({ replicas: 2, minReadySeconds: 10 });
    await cluster.settle();
    await cluster.runPod('web-0');
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0']);
    cluster.advance(11_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0', 'web-1']);
  });
});

describe('a name in use', () => {
  it('is reported, and used when it is free', async () => {
    const cluster = statefulCluster();
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'web-0', labels: { app: 'other' } }, spec: {} });
    await cluster.createStatefulSet({ replicas: 1 });
    await cluster.settle();
    expect(await cluster.events('FailedCreate')).toEqual([
      'create Pod web-0 in StatefulSet web failed error: pods "web-0" already exists',
    ]);
    expect((await cluster.set()).status?.conditions).toMatchObject([{ type: 'ReplicaFailure', status: 'True' }]);
    await cluster.remove('pods', 'web-0');
    await cluster.settle();
    cluster.advance(61_000);
    await cluster.tick();
    await cluster.settle();
    expect((await cluster.pods())[0]?.metadata.ownerReferences).toHaveLength(1);
    expect((await cluster.set()).status?.conditions).toBeUndefined();
  });

  it('of a pod that the set selects is adopted, with the label of its name', async () => {
    const cluster = statefulCluster();
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'web-0', labels: { app: 'web' } }, spec: {} });
    await cluster.create('pods', { kind: 'Pod', metadata: { name: 'stranger', labels: { app: 'web' } }, spec: {} });
    await cluster.createStatefulSet({ replicas: 1 });
    await cluster.settle();
    const pods = await cluster.pods();
    expect(pods.map(({ metadata }) => metadata.ownerReferences?.length ?? 0)).toEqual([0, 1]);
    expect(pods[1]?.metadata.labels).toMatchObject({ 'statefulset.kubernetes.io/pod-name': 'web-0' });
  });
});

describe('a rolling update of a StatefulSet', () => {
  it('WT-13 replaces from the highest ordinal, each when the former is healthy', async () => {
    const cluster = await running();
    const first = (await cluster.set()).status?.currentRevision;
    await cluster.setImage('v2');
    const replaced: string[] = [];
    for (const name of ['web-2', 'web-1', 'web-0']) {
      await cluster.settle();
      const doomed = (await cluster.list('pods')).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
      replaced.push(...doomed.map(({ metadata }) => metadata.name ?? ''));
      await cluster.remove('pods', name);
      await cluster.settle();
      expect((await cluster.set()).status?.currentRevision).toBe(first);
      await cluster.runPod(name);
    }
    await cluster.settle();
    expect(replaced).toEqual(['web-2', 'web-1', 'web-0']);
    const { status } = await cluster.set();
    expect(status?.currentRevision).toBe(status?.updateRevision);
    expect(status?.currentRevision).not.toBe(first);
    expect(await cluster.images()).toEqual({ 'web-0': 'v2', 'web-1': 'v2', 'web-2': 'v2' });
  });

  it('WT-15 makes pods below the partition of the current revision', async () => {
    const cluster = await running({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } });
    await cluster.setImage('v2');
    await cluster.settleRunning();
    await cluster.remove('pods', 'web-0');
    await cluster.settleRunning();
    expect(await cluster.images()).toEqual({ 'web-0': 'v1', 'web-1': 'v1', 'web-2': 'v2' });
    expect((await cluster.set()).status).toMatchObject({ currentReplicas: 2, updatedReplicas: 1 });
  });

  it('WT-17 waits for a broken pod even after the template is repaired', async () => {
    const cluster = await running();
    await cluster.setImage('broken');
    await cluster.settle();
    await cluster.remove('pods', 'web-2');
    await cluster.settle();
    await cluster.setImage('repaired');
    await cluster.settle();
    expect((await cluster.images())['web-2']).toBe('broken');
    await cluster.remove('pods', 'web-2');
    await cluster.settleRunning();
    expect((await cluster.images())['web-2']).toBe('repaired');
  });

  it('replaces maxUnavailable pods at a time if it is set', async () => {
    const cluster = await running({
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 2 } },
    });
    await cluster.setImage('v2');
    await cluster.settle();
    expect((await cluster.pods()).map(({ metadata }) => metadata.name)).toEqual(['web-0']);
  });

  it('with OnDelete replaces a pod when a person deletes it', async () => {
    const cluster = await running({ updateStrategy: { type: 'OnDelete' } });
    await cluster.setImage('v2');
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(3);
    await cluster.remove('pods', 'web-0');
    await cluster.settleRunning();
    expect(await cluster.images()).toEqual({ 'web-0': 'v2', 'web-1': 'v1', 'web-2': 'v1' });
  });

  it('replaces nothing while the gate is closed, and resumes when it opens', async () => {
    const cluster = await running();
    cluster.stopTicks();
    cluster.advance(600_000);
    await cluster.setImage('v2');
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(3);
    cluster.startTicks();
    cluster.advance(10_000);
    await cluster.tick();
    await cluster.settleRunning();
    expect(Object.values(await cluster.images())).toEqual(['v2', 'v2', 'v2']);
  });

  it('WT-19 keeps as many old revisions as the limit says, and those that a pod has', async () => {
    const cluster = await running({ revisionHistoryLimit: 1, updateStrategy: { type: 'OnDelete' } });
    for (const image of ['v2', 'v3', 'v4', 'v5']) {
      await cluster.setImage(image);
      await cluster.settle();
      if (image !== 'v2') continue;
      await cluster.remove('pods', 'web-2');
      await cluster.settleRunning();
    }
    // 1 is current and of two pods, 2 of web-2, 5 the present one; 4 is within the limit.
    expect(await revisionsOf(cluster)).toEqual([1, 2, 4, 5]);
  });
});

describe('a StatefulSet', () => {
  it('WT-23 that is being deleted only reports its status', async () => {
    const cluster = await running();
    await cluster.change('statefulsets', 'web', (set) => ({
      ...set,
      metadata: { ...set.metadata, finalizers: ['example.com/hold'], deletionTimestamp: '2026-01-01T00:00:00Z' },
    }));
    await cluster.remove('pods', 'web-2');
    await cluster.settle();
    expect(await cluster.names()).toEqual(['web-0', 'web-1']);
    expect((await cluster.set()).status?.replicas).toBe(2);
  });

  it('is repaired by the sweep when a record was lost, and otherwise left alone', async () => {
    const cluster = await running();
    await cluster.tick();
    cluster.advance(900_000);
    expect(await cluster.tick()).toMatchObject({ swept: 0 });
    await cluster.changeSpec({ replicas: 4 });
    await cluster.records();
    cluster.advance(900_000);
    expect(await cluster.tick()).toMatchObject({ swept: 1 });
    expect(await cluster.names()).toContain('web-3');
  });

  it('decides and writes nothing when it is settled', async () => {
    const cluster = await running();
    const before = cluster.tables.changes('objects', 0).length;
    const change = cluster.tables.changes('objects', 0).find(({ key }) => key.pk.startsWith('o#statefulsets'))!;
    await cluster.controllers.onWorkloadRecords([change]);
    expect(cluster.tables.changes('objects', 0).length).toBe(before);
  });

  it('records decisions that replay to the same', async () => {
    const cluster = await running();
    await cluster.setImage('v2');
    await cluster.settleRunning();
    await cluster.changeSpec({ replicas: 1 });
    await cluster.settleRunning();
    const decisions = await cluster.decisions();
    expect(decisions.map(({ act }) => act)).toEqual(expect.arrayContaining(['PodsCreated', 'PodsDeleted']));
    expect(decisions.filter((record) => !replay(record).same)).toEqual([]);
  });
});
