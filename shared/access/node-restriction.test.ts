import { describe, expect, it } from 'vitest';
import { nodeIdentity } from './authorize.ts';
import { authorizeNode, isForbiddenNodeLabel, type NodeRequest } from './node-restriction.ts';

const user = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
const request = (over: Partial<NodeRequest>): NodeRequest => ({
  user,
  verb: 'update',
  apiGroup: '',
  resource: 'nodes',
  subresource: '',
  namespace: '',
  name: 'n1',
  ...over,
});

describe('nodeIdentity', () => {
  it('needs the group and the name', () => {
    expect(nodeIdentity(user)).toEqual({ kind: 'node', nodeName: 'n1' });
    expect(nodeIdentity({ name: 'system:node:n1', groups: [] })).toEqual({ kind: 'notANode' });
    expect(nodeIdentity({ name: 'system:node:', groups: ['system:nodes'] })).toEqual({ kind: 'unknownNode' });
  });
});

describe('authorizeNode', () => {
  it('names the node that was meant', () => {
    expect(authorizeNode(request({ verb: 'delete', name: 'n2' }))).toEqual({
      kind: 'forbidden',
      message: 'node "n1" is not allowed to modify node "n2"',
    });
  });

  it('does not let a create name one node in the path and another in the body', () => {
    const object = { metadata: { name: 'n2' } };
    expect(authorizeNode(request({ verb: 'create', object })).kind).toBe('forbidden');
    const lease = { apiGroup: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease' };
    expect(authorizeNode(request({ ...lease, verb: 'create', object })).kind).toBe('forbidden');
  });

  it('treats patch as update, and ignores the order of fields', () => {
    const stored = { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } };
    const reordered = { spec: { taints: [{ effect: 'NoSchedule', key: 'a', value: undefined }] } };
    expect(authorizeNode(request({ verb: 'patch', stored, object: reordered })).kind).toBe('allowed');
    expect(authorizeNode(request({ verb: 'patch', stored, object: { spec: {} } })).kind).toBe('forbidden');
  });

  it('treats a patch or update that creates as a create', () => {
    const object = { metadata: { name: 'n1', labels: { 'other.k8s.io/x': '' } } };
    expect(authorizeNode(request({ verb: 'patch', object }))).toMatchObject({
      kind: 'forbidden',
      message: 'node "n1" is not allowed to set the following labels: other.k8s.io/x',
    });
    expect(authorizeNode(request({ verb: 'patch', resource: 'pods', name: 'p', object: { spec: {} } })).kind).toBe(
      'forbidden',
    );
  });

  it('keeps ownerReferences of the Node', () => {
    const object = { metadata: { ownerReferences: [{ kind: 'Pod' }] } };
    expect(authorizeNode(request({ stored: {}, object })).kind).toBe('forbidden');
  });

  it('finds references wherever a mirror pod can hide them', () => {
    const mirror = (spec: Record<string, unknown>): NodeRequest =>
      request({
        verb: 'create',
        resource: 'pods',
        name: 'p',
        object: {
          metadata: {
            annotations: { 'kubernetes.io/config.mirror': 'x' },
            ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u', controller: true }],
          },
          spec: { nodeName: 'n1', ...spec },
        },
        nodeUid: 'u',
      });
    expect(authorizeNode(mirror({}))).toEqual({ kind: 'allowed' });
    expect(
      authorizeNode(
        mirror({
          volumes: [{ hostPath: { path: '/secret' } }, { csi: { volumeAttributes: { secret: 'word' } } }],
          nodeSelector: { secret: 'x' },
        }),
      ),
    ).toEqual({ kind: 'allowed' });
    for (const spec of [
      { serviceAccountName: 'sa' },
      { imagePullSecrets: [{ name: 's' }] },
      { volumes: [{ secret: { secretName: 's' } }] },
      { volumes: [{ configMap: { name: 's' } }] },
      { volumes: [{ projected: { sources: [{ secret: { name: 's' } }] } }] },
      { volumes: [{ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
      { volumes: [{ csi: { driver: 'd', nodePublishSecretRef: { name: 's' } } }] },
      { volumes: [{ ephemeral: { volumeClaimTemplate: {} } }] },
      { containers: [{ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }] },
      { initContainers: [{ envFrom: [{ configMapRef: { name: 's' } }] }] },
    ]) {
      expect(authorizeNode(mirror(spec)), JSON.stringify(spec)).toMatchObject({ kind: 'forbidden' });
    }
  });

  it('lets a missing pod be answered by the verb itself', () => {
    expect(authorizeNode(request({ verb: 'delete', resource: 'pods', name: 'gone' })).kind).toBe('allowed');
  });

  it('passes resources it does not know', () => {
    expect(authorizeNode(request({ verb: 'create', resource: 'events', name: 'e' })).kind).toBe('allowed');
  });
});

describe('isForbiddenNodeLabel', () => {
  it.each([
    ['team', false],
    ['example.com/x', false],
    ['notkubernetes.io/x', false],
    ['kubernetes.io/hostname', false],
    ['kubernetes.io/role', true],
    ['node-role.kubernetes.io/control-plane', true],
    ['node.kubernetes.io/anything', false],
    ['sub.node.kubernetes.io/anything', false],
    ['kubelet.kubernetes.io/x', false],
    ['node-restriction.kubernetes.io/x', true],
    ['x.node-restriction.kubernetes.io/x', true],
    ['k8s.io/x', true],
  ])('%s: %s', (key, expected) => {
    expect(isForbiddenNodeLabel(key)).toBe(expected);
  });
});

it('a claim status with the only field __proto__ differs from one with another field', () => {
  const pod = (claim: unknown) => ({
    metadata: { name: 'p', namespace: 'default' },
    spec: { nodeName: 'n1' },
    status: { resourceClaimStatuses: [claim] },
  });
  const verdict = (claim: unknown) =>
    authorizeNode({
      user: { name: 'system:node:n1', groups: ['system:nodes'] },
      verb: 'update',
      apiGroup: '',
      resource: 'pods',
      subresource: 'status',
      namespace: 'default',
      name: 'p',
      stored: pod(JSON.parse('{"__proto__":{}}')),
      object: pod(claim),
    });
  expect(verdict(JSON.parse('{"__proto__":{}}'))).toEqual({ kind: 'allowed' });
  expect(verdict({ name: {} })).toMatchObject({
    kind: 'forbidden',
    message: expect.stringContaining('cannot update resource claim statuses'),
  });
});
