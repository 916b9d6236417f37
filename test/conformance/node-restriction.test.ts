/** Area NR: what the identity system:node:mynode in group system:nodes may do. */

import { describe, expect, it } from 'vitest';
import {
  authorizeNode,
  changedLabelKeys,
  type NodeRequest,
  type RestrictedObject,
} from '../../shared/access/node-restriction.ts';
import {
  type ApiInMemory,
  apiInMemory,
  NODES,
  node as nodeBody,
  pod as podBody,
  podsIn,
  type Send,
} from '../support/api-in-memory.ts';
import { makeRequest } from '../support/certificate-request.ts';

const MYNODE = { name: 'system:node:mynode', groups: ['system:nodes'] };

/** The API with the Node mynode, its pod `own`, and the pod `other` of another node. */
async function apiOfNode(): Promise<ApiInMemory> {
  const api = apiInMemory({ users: { [MYNODE.name]: MYNODE } });
  for (const name of ['mynode', 'othernode']) {
    expect((await api.send('POST', NODES, { body: nodeBody(name) })).code).toBe(201);
  }
  for (const [name, nodeName] of [
    ['own', 'mynode'],
    ['other', 'othernode'],
  ] as const) {
    const made = await api.send('POST', podsIn('default'), { body: podBody(name, { spec: { nodeName } }) });
    expect(made.code).toBe(201);
  }
  return api;
}
const asNode = (send: Send): Send => ({ ...send, headers: { authorization: `Bearer ${MYNODE.name}` } });

function ask(over: Partial<NodeRequest>): string {
  const request: NodeRequest = {
    user: MYNODE,
    verb: 'create',
    apiGroup: '',
    resource: 'pods',
    subresource: '',
    namespace: '',
    name: '',
    ...over,
  };
  return authorizeNode(request).kind;
}

const allVerbs = (over: Partial<NodeRequest>): string[] =>
  (['create', 'update', 'delete'] as const).map((verb) => ask({ verb, ...over }));

const FORBIDDEN = ['forbidden', 'forbidden', 'forbidden'];

const owner = (over: Record<string, unknown> = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  name: 'mynode',
  uid: 'node-uid',
  controller: true,
  ...over,
});

interface PodParts {
  readonly nodeName?: string;
  readonly mirror?: boolean;
  readonly labels?: Record<string, string>;
  readonly owners?: readonly object[];
  readonly spec?: Record<string, unknown>;
}

const pod = ({ nodeName, mirror, labels, owners, spec }: PodParts): RestrictedObject => ({
  metadata: {
    name: 'mypod',
    uid: 'pod-uid',
    ...(labels === undefined ? {} : { labels }),
    ...(mirror === true
      ? { annotations: { 'kubernetes.io/config.mirror': 'true' }, ownerReferences: owners ?? [owner()] }
      : {}),
  },
  spec: { ...(nodeName === undefined ? {} : { nodeName }), ...spec },
});

const podRequest = (object: RestrictedObject, over: Partial<NodeRequest> = {}): Partial<NodeRequest> => ({
  namespace: 'ns',
  name: 'mypod',
  object,
  stored: object,
  nodeUid: 'node-uid',
  ...over,
});
const createMirror = (parts: PodParts): string =>
  ask(podRequest(pod({ nodeName: 'mynode', mirror: true, ...parts }), { verb: 'create' }));

const eviction = (target: RestrictedObject, name = 'mypod'): Partial<NodeRequest> =>
  podRequest(target, { subresource: 'eviction', name, object: { metadata: { name: 'mypod' } } });

describe('pods', () => {
  it('NR-02 only updates the status of its mirror pod', () => {
    const mirror = pod({ nodeName: 'mynode', mirror: true });
    expect(allVerbs(podRequest(mirror, { subresource: 'status' }))).toEqual(['forbidden', 'allowed', 'forbidden']);
  });

  it('NR-04 does nothing to a mirror pod of another node', () => {
    expect(allVerbs(podRequest(pod({ nodeName: 'othernode', mirror: true })))).toEqual(FORBIDDEN);
  });

  it('NR-06 does not evict a mirror pod of another node, named or not', () => {
    const other = pod({ nodeName: 'othernode', mirror: true });
    expect(allVerbs(eviction(other))).toEqual(FORBIDDEN);
    expect(allVerbs(eviction(other, ''))).toEqual(FORBIDDEN);
  });

  it('NR-08 deletes a normal pod of its own, and neither creates nor updates one', () => {
    expect(allVerbs(podRequest(pod({ nodeName: 'mynode' })))).toEqual(['forbidden', 'forbidden', 'allowed']);
  });

  it('NR-10 changes no labels by a status update', () => {
    const labelled = (...keys: string[]) =>
      pod({ nodeName: 'mynode', labels: Object.fromEntries(keys.map((key) => [key, '1'])) });
    const change = (before: RestrictedObject, after: RestrictedObject) =>
      ask(podRequest(after, { verb: 'update', subresource: 'status', stored: before }));
    expect([
      change(labelled('a'), labelled('a', 'b')),
      change(labelled('a', 'b'), labelled('a')),
      change(labelled('a'), pod({ nodeName: 'mynode' })),
      change(pod({ nodeName: 'mynode' }), labelled('a')),
    ]).toEqual(Array(4).fill('forbidden'));
  });

  it('NR-12 does nothing to a normal pod of another node or an unbound one', () => {
    for (const other of [pod({ nodeName: 'othernode' }), pod({})]) {
      expect(allVerbs(podRequest(other))).toEqual(FORBIDDEN);
      expect(allVerbs(podRequest(other, { subresource: 'status' }))).toEqual(FORBIDDEN);
      expect(allVerbs(eviction(other))).toEqual(FORBIDDEN);
    }
  });

  it('NR-14 (ours, not kept) reads the name of an eviction from its path; a body without one is valid', async () => {
    const api = await apiOfNode();
    const own = await api.send('POST', `${podsIn('default')}/own/eviction`, asNode({ body: { metadata: {} } }));
    const other = await api.send('POST', `${podsIn('default')}/other/eviction`, asNode({ body: { metadata: {} } }));
    expect([own.code, other.code]).toEqual([201, 403]);
    expect(other.body.message).toContain('node "mynode" can only evict pods with spec.nodeName set to itself');
  });

  it.each([
    ['of an existing namespace', 'default'],
    ['of a namespace that does not exist', 'absent'],
  ])('answers 404 to the eviction of a missing pod %s, not 403', async (_, namespace) => {
    const api = await apiOfNode();
    const path = `${podsIn(namespace)}/missing/eviction`;
    const answer = await api.send('POST', path, asNode({ body: { metadata: { name: 'missing', namespace } } }));
    expect(answer.code).toBe(404);
    expect(answer.body).toMatchObject({
      reason: 'NotFound',
      message: 'pods "missing" not found',
      details: { name: 'missing', kind: 'pods' },
    });
  });

  it('NR-16 creates no mirror pod that references API objects', () => {
    expect(createMirror({})).toBe('allowed');
    const bundle = { projected: { sources: [{ clusterTrustBundle: { name: 'b', path: 'p' } }] } };
    expect(createMirror({ spec: { volumes: [bundle] } })).toBe('forbidden');
    expect(createMirror({ spec: { volumes: [{ persistentVolumeClaim: { claimName: 'c' } }] } })).toBe('forbidden');
    expect(createMirror({ spec: { resourceClaims: [{ name: 'r', resourceClaimName: 'x' }] } })).toBe('forbidden');
  });

  it('NR-40 creates no mirror pod with two owners, another’s name or another uid', () => {
    expect(createMirror({ owners: [owner(), owner()] })).toBe('forbidden');
    expect(createMirror({ owners: [owner({ name: 'other' })] })).toBe('forbidden');
    expect(createMirror({ owners: [owner({ uid: 'another' })] })).toBe('forbidden');
  });

  it('NR-42 creates no mirror pod with an owner other than the Node as its controller', () => {
    for (const over of [
      { apiVersion: 'v2' },
      { kind: 'Pod' },
      { controller: undefined },
      { controller: false },
      { blockOwnerDeletion: true },
    ]) {
      expect(createMirror({ owners: [owner(over)] }), JSON.stringify(over)).toBe('forbidden');
    }
  });

  it('NR-32 an unrelated user is none of its business', () => {
    const bob = { user: { name: 'bob', groups: ['system:authenticated'] } };
    const other = pod({ nodeName: 'othernode' });
    expect(allVerbs(podRequest(other, bob))).toEqual(['allowed', 'allowed', 'allowed']);
    expect(allVerbs(podRequest(other, { ...bob, subresource: 'status' }))).toEqual(['allowed', 'allowed', 'allowed']);
  });
});

interface NodeParts {
  readonly name?: string;
  readonly labels?: Record<string, string>;
  readonly spec?: Record<string, unknown>;
}
const node = ({ name = 'mynode', labels = {}, spec = {} }: NodeParts = {}): RestrictedObject => ({
  metadata: { name, labels },
  spec,
});
const createNode = (parts: NodeParts): string =>
  ask({ resource: 'nodes', verb: 'create', name: 'mynode', object: node(parts) });
const updateNode = (before: NodeParts, after: NodeParts): string =>
  ask({ resource: 'nodes', verb: 'update', name: 'mynode', stored: node(before), object: node(after) });

describe('nodes', () => {
  it('NR-18 creates itself with taints', () => {
    expect(createNode({ spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } })).toBe('allowed');
  });

  it('NR-20 does not create itself with restricted labels, and lists them sorted', () => {
    const keys = [
      'node-restriction.kubernetes.io/foo',
      'foo.node-restriction.kubernetes.io/foo',
      'other.kubernetes.io/foo',
      'other.k8s.io/foo',
    ];
    const labels = Object.fromEntries(keys.map((key) => [key, 'bar']));
    const outcome = authorizeNode({
      user: MYNODE,
      verb: 'create',
      apiGroup: '',
      resource: 'nodes',
      subresource: '',
      namespace: '',
      name: 'mynode',
      object: node({ labels }),
    });
    expect(outcome).toMatchObject({
      kind: 'forbidden',
      message: expect.stringContaining(
        'foo.node-restriction.kubernetes.io/foo, node-restriction.kubernetes.io/foo, other.k8s.io/foo, other.kubernetes.io/foo',
      ),
    });
  });

  it('NR-22 may keep or drop configSource, not set or change it', () => {
    const a = { spec: { configSource: { configMap: { name: 'A' } } } };
    const b = { spec: { configSource: { configMap: { name: 'B' } } } };
    expect([updateNode({}, a), updateNode(a, b), updateNode(a, a), updateNode(a, {})]).toEqual([
      'forbidden',
      'forbidden',
      'allowed',
      'allowed',
    ]);
  });

  it('NR-24 changes no taint of itself', () => {
    const tainted = (...taints: Record<string, string>[]) => ({ spec: { taints } });
    const taint = { key: 'k', value: 'v', effect: 'NoSchedule' };
    expect([
      updateNode({}, tainted(taint)),
      updateNode(tainted(taint), {}),
      updateNode(tainted(taint), tainted({ ...taint, value: 'w' })),
    ]).toEqual(FORBIDDEN);
    expect(updateNode(tainted(taint), tainted(taint))).toBe('allowed');
  });

  it('NR-26 changes allowed labels beside forbidden ones that stay', () => {
    const kept = { 'node-restriction.kubernetes.io/foo': 'bar', 'other.k8s.io/foo': 'bar' };
    const allowed = { 'kubernetes.io/hostname': 'h', 'kubelet.kubernetes.io/foo': 'bar', team: 'a' };
    expect(updateNode({ labels: kept }, { labels: { ...kept, ...allowed } })).toBe('allowed');
    expect(updateNode({ labels: { ...kept, ...allowed } }, { labels: kept })).toBe('allowed');
  });

  it('NR-28 does nothing to another node', () => {
    const object = node({ name: 'othernode' });
    const other = { resource: 'nodes', name: 'othernode', object, stored: object };
    expect(allVerbs(other)).toEqual(FORBIDDEN);
    expect(allVerbs({ ...other, name: '' })).toEqual(FORBIDDEN);
    expect(ask({ ...other, verb: 'update', subresource: 'status' })).toBe('forbidden');
  });

  it('NR-44 knows which label keys changed', () => {
    expect(changedLabelKeys({}, { a: '' })).toEqual(['a']);
    expect(changedLabelKeys({ z: '' }, {})).toEqual(['z']);
    expect(changedLabelKeys({ z: '3' }, { z: '' })).toEqual(['z']);
    expect(changedLabelKeys({ a: '1', b: '2' }, { a: '2', c: '3' })).toEqual(['a', 'b', 'c']);
  });

  it('NR-48 a member of the nodes’ group without a node name may do nothing', () => {
    const nameless = { user: { name: 'nobody', groups: ['system:nodes'] } };
    expect(allVerbs({ ...nameless, resource: 'nodes', name: 'mynode' })).toEqual(FORBIDDEN);
    expect(ask({ ...nameless, resource: 'events' })).toBe('forbidden');
  });

  it('NR-50 may exclude itself from disruption handling', () => {
    expect(updateNode({}, { labels: { 'node.kubernetes.io/exclude-disruption': '' } })).toBe('allowed');
  });
});

describe('others', () => {
  it('NR-30 (ours, not kept) asks for a token for one audience that its pod names, whatever a role grants', async () => {
    const api = await apiOfNode();
    const sources = [{ serviceAccountToken: { path: 'token', audience: 'vault' } }];
    const spec = {
      nodeName: 'mynode',
      serviceAccountName: 'default',
      volumes: [{ name: 't', projected: { sources } }],
    };
    const made = await api.send('POST', podsIn('default'), { body: podBody('asking', { spec }) });
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'asking', uid: made.body.metadata.uid };
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token';
    const codes: number[] = [];
    for (const audiences of [['vault'], ['vault', 'bank'], ['bank']]) {
      codes.push((await api.send('POST', path, asNode({ body: { spec: { audiences, boundObjectRef } } }))).code);
    }
    expect(codes).toEqual([201, 403, 403]);
  });

  it('NR-34 does nothing to another’s lease', () => {
    const object = { metadata: { name: 'foo' } };
    const lease = { apiGroup: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease', object };
    expect(allVerbs({ ...lease, name: 'foo' })).toEqual(FORBIDDEN);
    expect(ask({ ...lease, verb: 'create', name: '' })).toBe('forbidden');
    expect(allVerbs({ ...lease, name: 'mynode', object: { metadata: { name: 'mynode' } } })).toEqual(
      Array(3).fill('allowed'),
    );
    expect(allVerbs({ ...lease, name: 'mynode', namespace: 'default' })).toEqual(FORBIDDEN);
  });

  it('NR-36 does nothing to another’s CSINode', () => {
    const csiNode = { apiGroup: 'storage.k8s.io', resource: 'csinodes', name: 'foo' };
    expect(allVerbs({ ...csiNode, object: { metadata: { name: 'foo' } } })).toEqual(FORBIDDEN);
  });

  it('NR-38 asks kubelets’ signers for its own name only', async () => {
    const api = await apiOfNode();
    const ask = async (commonName: string, signer: string) => {
      const { request } = await makeRequest({ commonName, organizations: ['system:nodes'] });
      const spec = { request, signerName: `kubernetes.io/${signer}`, usages: ['digital signature'] };
      const body = { metadata: { generateName: 'csr-' }, spec };
      const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
      return (await api.send('POST', path, asNode({ body }))).code;
    };
    const kubelets = ['kube-apiserver-client-kubelet', 'kubelet-serving'];
    for (const signer of kubelets) expect(await ask('system:node:mynode', signer)).toBe(201);
    for (const signer of kubelets) expect(await ask('system:node:othernode', signer)).toBe(403);
    expect(await ask('some-other-identity', 'kube-apiserver-client')).toBe(201);
  });

  it('NR-46 (ours, not kept) creates no ResourceSlices', async () => {
    const api = await apiOfNode();
    const body = { metadata: { name: 'mynode' }, spec: { nodeName: 'mynode' } };
    expect((await api.send('POST', '/apis/resource.k8s.io/v1/resourceslices', asNode({ body }))).code).toBe(404);
  });
});
