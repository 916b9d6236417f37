import { describe, expect, it } from 'vitest';
import type { KubePod, ObjectMeta } from '../../shared/kinds/types.ts';
import { workloadCluster } from '../../test/support/workload-cluster.ts';
import { lostByAdmission } from './new-objects.ts';

const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true };
const pod = (metadata: Partial<ObjectMeta> = {}): KubePod => ({
  metadata: { name: 'a', labels: { app: 'web' }, finalizers: ['f'], ownerReferences: [OWNER], ...metadata },
});

it.each<[string, Partial<ObjectMeta>, string | undefined]>([
  ['nothing', {}, undefined],
  ['a label more', { labels: { app: 'web', injected: 'yes' } }, undefined],
  ['an annotation and a finalizer more', { annotations: { a: 'b' }, finalizers: ['g', 'f'] }, undefined],
  ['another value of a label', { labels: { app: 'other' } }, 'metadata.labels[app]'],
  ['no labels', { labels: undefined as never }, 'metadata.labels[app]'],
  ['another finalizer', { finalizers: ['g'] }, 'metadata.finalizers[f]'],
  ['no owner', { ownerReferences: [] }, 'metadata.ownerReferences'],
  ['another owner', { ownerReferences: [{ ...OWNER, uid: 'v' }] }, 'metadata.ownerReferences'],
])('admission may not change in a pod what its owner needs: %s', (_, changed, expected) => {
  expect(lostByAdmission(pod(), pod(changed))).toBe(expected);
});

describe('pods that admission changed', () => {
  const clusterOf = (change: (pod: KubePod) => KubePod) =>
    workloadCluster({
      admitObjects: async (_owner, _of, objects) => ({
        kind: 'decided',
        objects: objects.map(({ object: made, complete }) => complete(change(made))),
      }),
    });

  it('are stored with the defaults of what it added', async () => {
    const cluster = clusterOf(({ spec, ...more }) => ({
      ...more,
      spec: { ...spec, containers: [...(spec?.containers ?? []), { name: 'proxy', image: 'proxy:1' }] },
    }));
    await cluster.createSet(3);
    await cluster.settle();
    const pods = await cluster.list<KubePod>('pods');
    expect(pods.map(({ spec }) => spec?.containers?.map(({ imagePullPolicy }) => imagePullPolicy))).toEqual(
      Array.from({ length: 3 }, () => ['Always', 'IfNotPresent']),
    );
  });

  it.each<[string, (pod: KubePod) => KubePod, RegExp]>([
    [
      'are refused without their labels: their owner would create more without end',
      ({ metadata, ...more }) => ({ ...more, metadata: { ...metadata, labels: {} } }),
      /^Error creating: Pod "web-\w+" is invalid: metadata\.labels\[app\]: its owner needs it, and admission changed it$/,
    ],
    [
      'are refused with what is not valid',
      ({ spec, ...more }) => ({ ...more, spec: { ...spec, containers: [] } }),
      /^Error creating: Pod "web-\w+" is invalid: spec\.containers: Required value$/,
    ],
  ])('%s', async (_, change, message) => {
    const cluster = clusterOf(change);
    await cluster.createSet(3);
    await cluster.settle();
    expect(await cluster.list('pods')).toEqual([]);
    expect(await cluster.events('FailedCreate')).toEqual([expect.stringMatching(message)]);
  });
});
