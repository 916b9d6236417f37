import { expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import { isMirrorOf, mirrorCreation, staticPod } from './static-pod.ts';

const MIRROR = 'kubernetes.io/config.mirror';
const TOLERATION = { operator: 'Exists', effect: 'NoExecute' };
const SEEN = '2026-01-01T00:00:00Z';
const from = (metadata: object, spec?: object) =>
  staticPod({ metadata, ...(spec && { spec }) } as unknown as KubePod, 'Node-1', 'hash', SEEN);
const own = {
  'kubernetes.io/config.hash': 'hash',
  'kubernetes.io/config.seen': SEEN,
  'kubernetes.io/config.source': 'file',
};

it('a static pod has the name of its node, the hash as its uid, and tolerates taints that evict', () => {
  const manifest = { name: 'etcd', namespace: 'kube-system', labels: { a: 'b' }, annotations: { c: 'd' } };
  const first = { key: 'x', operator: 'Exists' };
  expect(from(manifest, { hostNetwork: true, nodeName: 'other', tolerations: [first] })).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'etcd-node-1',
      namespace: 'kube-system',
      uid: 'hash',
      labels: { a: 'b' },
      annotations: { c: 'd', ...own },
    },
    spec: { hostNetwork: true, nodeName: 'Node-1', tolerations: [first, TOLERATION] },
    status: { phase: 'Pending' },
  });
});

it.each([undefined, ''])('a static pod with the namespace %j is in the default one', (namespace) => {
  const pod = from({ name: 'p', ...(namespace === undefined ? {} : { namespace }) });
  expect(pod.metadata).toEqual({ name: 'p-node-1', namespace: 'default', uid: 'hash', annotations: own });
  expect('labels' in pod.metadata).toBe(false);
  expect(pod.spec).toEqual({ nodeName: 'Node-1', tolerations: [TOLERATION] });
});

it('its mirror is created in its namespace, owned by the Node, with its uid as an annotation', () => {
  const pod = from({ name: 'p', namespace: 'a b' });
  expect(mirrorCreation(pod, 'Node-1', 'node-uid')).toEqual({
    method: 'POST',
    path: '/api/v1/namespaces/a%20b/pods',
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'p-node-1',
        namespace: 'a b',
        annotations: { ...own, [MIRROR]: 'hash' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'Node-1', uid: 'node-uid', controller: true }],
      },
      spec: pod.spec,
    },
  });
});

it('is shown by a mirror of the same name, namespace and hash alone', () => {
  const pod = from({ name: 'p' });
  const mirror = (over: object = {}, hash: string | undefined = 'hash') =>
    ({
      metadata: { name: 'p-node-1', namespace: 'default', annotations: { [MIRROR]: hash }, ...over },
    }) as unknown as KubePod;
  expect(isMirrorOf(mirror(), pod)).toBe(true);
  const others = [
    mirror({ name: 'q' }),
    mirror({ namespace: 'x' }),
    mirror({}, 'old'),
    mirror({ annotations: undefined }),
  ];
  expect(others.map((each) => isMirrorOf(each, pod))).toEqual([false, false, false, false]);
});
