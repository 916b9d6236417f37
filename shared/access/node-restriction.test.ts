import { describe, expect, it } from 'vitest';
import { nodeIdentity } from './authorize.ts';
import {
  authorizeNode,
  changedLabelKeys,
  isForbiddenNodeLabel,
  type NodeRequest,
  podReferenceFault,
  type RestrictedObject,
  tokenRequestFault,
} from './node-restriction.ts';

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

/** '' for an allowed request, else its refusal. */
const refusalOf = (over: Partial<NodeRequest>): string => {
  const verdict = authorizeNode(request(over));
  return verdict.kind === 'forbidden'
    ? verdict.message.replace(/^node "n1" /, '')
    : verdict.kind.replace('allowed', '');
};
const onNode = (nodeName: string, more: object = {}): RestrictedObject => ({ spec: { nodeName }, ...more });
const [own, foreign] = [onNode('n1'), onNode('n2')];

describe('a pod', () => {
  const pod = (over: Partial<NodeRequest>) => refusalOf({ resource: 'pods', namespace: 'a', name: 'p', ...over });
  const status = (over: Partial<NodeRequest>) => pod({ subresource: 'status', ...over });
  const evict = (over: Partial<NodeRequest>) => pod({ subresource: 'eviction', verb: 'create', ...over });

  it('is deleted by its own node only', () => {
    expect(pod({ verb: 'delete', stored: own })).toBe('');
    expect(pod({ verb: 'delete', stored: foreign })).toBe('can only delete pods with spec.nodeName set to itself');
    expect(pod({ verb: 'update', stored: own, object: own })).toBe(
      'can only create and delete mirror pods and delete its own',
    );
  });

  it('has its status from its own node only', () => {
    for (const verb of ['update', 'patch'] as const) {
      expect(status({ verb, stored: own, object: own })).toBe('');
      expect(status({ verb, stored: foreign, object: own })).toBe(
        'can only update pod status for pods with spec.nodeName set to itself',
      );
      expect(status({ verb, object: own })).toBe('');
    }
    for (const verb of ['create', 'delete'] as const) {
      expect(status({ verb, stored: own })).toBe('can only update the status of pods');
    }
  });

  it('keeps its labels and its claims in an update of its status', () => {
    const labelled = onNode('n1', { metadata: { labels: { a: 'b' } } });
    expect(status({ stored: labelled, object: labelled })).toBe('');
    expect(status({ stored: labelled, object: own })).toBe('cannot update labels through pod status');
    expect(status({ stored: own, object: labelled })).toBe('cannot update labels through pod status');
    const claims = (...names: string[]) =>
      onNode('n1', { status: { resourceClaimStatuses: names.map((name) => ({ name })) } });
    expect(status({ stored: claims('x'), object: claims('x') })).toBe('');
    expect(status({ stored: own, object: claims() })).toBe('');
    for (const [stored, object] of [
      [own, claims('x')],
      [claims('x'), own],
      [claims('x'), claims('y')],
      [claims('x', 'y'), claims('y', 'x')],
    ] as const)
      expect(status({ stored, object })).toBe('cannot update resource claim statuses');
  });

  it('is evicted by its own node only', () => {
    expect([evict({ stored: own }), evict({})]).toEqual(['', '']);
    expect(evict({ stored: foreign })).toBe('can only evict pods with spec.nodeName set to itself');
    expect(evict({ verb: 'update', stored: own })).toBe('can only create evictions');
    expect(pod({ subresource: 'binding', verb: 'create', stored: own })).toBe('may not use pod subresource "binding"');
  });

  it('keeps its finalizers, as every object', () => {
    const final = onNode('n1', { metadata: { finalizers: ['x/y'] } });
    const why = 'is not allowed to modify finalizers';
    expect(status({ stored: own, object: final })).toBe(why);
    expect(status({ stored: final, object: own })).toBe(why);
    expect(status({ stored: final, object: final })).toBe('');
    expect(pod({ verb: 'delete', stored: onNode('n1', { metadata: { finalizers: ['x/y'] } }) })).toBe('');
    expect(refusalOf({ verb: 'create', resource: 'events', name: '', object: final })).toBe(why);
  });
});

describe('a mirror pod', () => {
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u', controller: true };
  const mirror = (
    change: { metadata?: object; spec?: object; owner?: object } = {},
    nodeUid: string | undefined = 'u',
  ): string => {
    const metadata = {
      annotations: { 'kubernetes.io/config.mirror': 'x' },
      ownerReferences: [{ ...owner, ...change.owner }],
      ...change.metadata,
    };
    const object: RestrictedObject = { metadata, spec: { nodeName: 'n1', ...change.spec } };
    return refusalOf({ verb: 'create', resource: 'pods', namespace: 'a', name: '', object, nodeUid });
  };

  it.each([
    ['without its annotation', { metadata: { annotations: {} } }, /^can only create mirror pods: annotation/],
    ['on another node', { spec: { nodeName: 'n2' } }, /^can only create pods with spec.nodeName set to itself/],
    ['without an owner', { metadata: { ownerReferences: [] } }, /^can only create pods with exactly one owner/],
    ['of two owners', { metadata: { ownerReferences: [owner, owner] } }, /exactly one owner/],
    ['of an owner of another version', { owner: { apiVersion: 'v2' } }, /an owner reference set to itself/],
    ['of an owner of another kind', { owner: { kind: 'Pod' } }, /an owner reference set to itself/],
    ['of another node', { owner: { name: 'n2' } }, /an owner reference set to itself/],
    ['of an owner that is no controller', { owner: { controller: false } }, /must have controller set to true/],
    ['of an owner that waits for it', { owner: { blockOwnerDeletion: true } }, /must not set blockOwnerDeletion/],
    ['of an earlier Node of the name', { owner: { uid: 'v' } }, /the owner reference has uid "v", the node has "u"/],
    [
      'with a service account',
      { spec: { serviceAccount: 'x' } },
      /^can not create pods that reference service accounts/,
    ],
    ['with claims of devices', { spec: { resourceClaims: [{ name: 'x' }] } }, /that reference resource claims/],
  ] as [string, object, RegExp][])('%s is refused', (_, change, why) => {
    expect(mirror(change)).toMatch(why);
  });

  it('is accepted with empty lists, and waits for its Node', () => {
    expect(mirror({ owner: { blockOwnerDeletion: false } })).toBe('');
    const empty = { serviceAccountName: '', serviceAccount: '', imagePullSecrets: [], resourceClaims: [] };
    expect(mirror({ spec: { ...empty, volumes: [], containers: [{ env: [], envFrom: [] }] } })).toBe('');
    const object: RestrictedObject = {
      metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] },
      spec: { nodeName: 'n1' },
    };
    expect(authorizeNode(request({ verb: 'create', resource: 'pods', object }))).toEqual({
      kind: 'nodeNotFound',
      nodeName: 'n1',
    });
  });

  const env = (valueFrom: object) => ({ containers: [{ env: [{ name: 'A', valueFrom }] }] });
  const volume = (source: object) => ({ volumes: [source] });
  it.each([
    ['secrets', volume({ secret: {} })],
    ['secrets', volume({ flexVolume: { secretRef: {} } })],
    ['secrets', volume({ azureFile: { secretName: 'x' } })],
    ['secrets', volume({ csi: { nodePublishSecretRef: {} } })],
    ['secrets', env({ secretKeyRef: {} })],
    ['secrets', { ephemeralContainers: [{ envFrom: [{ secretRef: {} }] }] }],
    ['configmaps', volume({ configMap: {} })],
    ['configmaps', env({ configMapKeyRef: {} })],
    ['configmaps', { initContainers: [{ envFrom: [{ configMapRef: {} }] }] }],
    ['persistentvolumeclaims', volume({ persistentVolumeClaim: {} })],
    ['persistentvolumeclaims', volume({ ephemeral: {} })],
    ['clustertrustbundles', volume({ projected: { sources: [{ clusterTrustBundle: {} }] } })],
    ['service accounts', volume({ projected: { sources: [{ serviceAccountToken: {} }] } })],
  ])('that refers to %s is refused: %j', (kind, spec) => {
    expect(mirror({ spec })).toBe(`can not create pods that reference ${kind}`);
  });

  it('may have the names of references in free forms, absent ones, and is read to a bounded depth', () => {
    expect(mirror({ spec: volume({ csi: { volumeAttributes: { secretName: 'x' } } }) })).toBe('');
    expect(mirror({ spec: volume({ flexVolume: { options: { secret: 'x' } } }) })).toBe('');
    expect(mirror({ spec: volume({ secret: null, configMap: undefined }) })).toBe('');
    const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) });
    expect(mirror({ spec: volume(nested(11)) })).toBe('');
    expect(mirror({ spec: volume(nested(12)) })).toBe('can not create pods that reference objects nested too deeply');
  });
});

describe('a Node', () => {
  const write = (over: Partial<NodeRequest>) => refusalOf({ ...over });
  const labelled = (labels: Record<string, string>) => ({ metadata: { name: 'n1', labels } });

  it('is written under its own name only, with its status alone', () => {
    expect(write({ stored: {}, object: {} })).toBe('');
    expect(write({ subresource: 'status', stored: {}, object: {} })).toBe('');
    expect(write({ subresource: 'proxy', stored: {}, object: {} })).toBe('may not use node subresource "proxy"');
    expect(write({ name: 'n2', stored: {}, object: {} })).toBe('is not allowed to modify node "n2"');
    expect(write({ verb: 'create', name: '', object: { metadata: { name: 'n2' } } })).toBe(
      'is not allowed to modify node "n2"',
    );
    expect(write({ verb: 'create', name: '', object: { metadata: { name: 'n1' } } })).toBe('');
    expect(write({ verb: 'create', name: 'n1', object: {} })).toBe('');
    expect(write({ verb: 'create', name: '', object: {} })).toBe('is not allowed to modify node ""');
    expect(write({ name: '', stored: {}, object: { metadata: { name: 'n1' } } })).toBe(
      'is not allowed to modify node ""',
    );
    expect(write({ verb: 'delete', stored: labelled({ 'k8s.io/x': '' }) })).toBe('');
  });

  it('has only labels that a node may set, from its creation on', () => {
    const forbidden = { 'k8s.io/y': '', 'k8s.io/x': '', team: 'a' };
    expect(write({ verb: 'create', object: labelled(forbidden) })).toBe(
      'is not allowed to set the following labels: k8s.io/x, k8s.io/y',
    );
    expect(write({ verb: 'create', object: labelled({ team: 'a' }) })).toBe('');
    expect(write({ stored: labelled(forbidden), object: labelled(forbidden) })).toBe('');
    expect(write({ stored: labelled(forbidden), object: labelled({ ...forbidden, team: 'b' }) })).toBe('');
    for (const [before, after] of [
      [{}, { 'k8s.io/x': '' }],
      [{ 'k8s.io/x': '' }, {}],
      [{ 'k8s.io/x': '' }, { 'k8s.io/x': 'y' }],
    ] as const)
      expect(write({ stored: labelled({ ...before }), object: labelled({ ...after }) })).toBe(
        'is not allowed to modify labels: k8s.io/x',
      );
  });

  it('keeps its taints, but for their times, its owners and its configSource', () => {
    const taint = { key: 'a', effect: 'NoExecute' };
    const tainted = (...taints: object[]): RestrictedObject => ({ spec: { taints } });
    const late = { ...taint, timeAdded: '2026-01-01T00:00:00Z' };
    expect(write({ stored: tainted(late), object: tainted(taint) })).toBe('');
    expect(write({ stored: {}, object: tainted() })).toBe('');
    for (const [stored, object] of [
      [tainted(taint), tainted()],
      [tainted(), tainted(taint)],
      [tainted(taint), tainted({ ...taint, effect: 'NoSchedule' })],
      [tainted(taint), tainted(taint, { key: 'b', effect: 'NoExecute' })],
    ] as const)
      expect(write({ stored, object })).toBe('is not allowed to modify taints');
    const owned = { metadata: { ownerReferences: [{ kind: 'Pod' }] } };
    expect(write({ stored: owned, object: owned })).toBe('');
    expect(write({ stored: owned, object: { metadata: {} } })).toBe('is not allowed to modify ownerReferences');
    const source = { spec: { configSource: { x: 'y' } } };
    expect(write({ verb: 'create', object: source })).toBe('is not allowed to create itself with a spec.configSource');
    expect(write({ stored: {}, object: source })).toBe('is not allowed to set spec.configSource');
    expect(write({ stored: source, object: source })).toBe('');
    expect(write({ stored: source, object: {} })).toBe('');
    for (const none of [null, undefined])
      expect(write({ verb: 'create', object: { spec: { configSource: none } } })).toBe('');
  });

  it('keeps the conditions that our controllers set; absent times may be null', () => {
    const condition = { type: 'Flapping', status: 'True', reason: 'x' };
    const silence = { type: 'PlannedSilence', status: 'True' };
    const having = (...conditions: object[]): RestrictedObject => ({ status: { conditions } });
    const refusal = (what: string) => `is not allowed to modify the following conditions: ${what}`;
    const [flapping, planned] = [having(condition), having(silence)];
    const sent = (stored: RestrictedObject, object: RestrictedObject) =>
      write({ subresource: 'status', stored, object });
    expect(sent(flapping, having({ ...condition, lastHeartbeatTime: null }, { type: 'Ready' }))).toBe('');
    expect(sent(flapping, having())).toBe(refusal('Flapping'));
    expect(sent(having(), planned)).toBe(refusal('PlannedSilence'));
    expect(sent(having(), having(condition, silence))).toBe(refusal('Flapping, PlannedSilence'));
    expect(write({ verb: 'create', object: flapping })).toBe(refusal('Flapping'));
    expect(write({ verb: 'delete', stored: flapping })).toBe('');
  });
});

describe('Leases, CSINodes and other objects', () => {
  const lease = (over: Partial<NodeRequest>) =>
    refusalOf({ apiGroup: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease', ...over });
  const csi = (over: Partial<NodeRequest>) => refusalOf({ apiGroup: 'storage.k8s.io', resource: 'csinodes', ...over });

  it('have the name of their node', () => {
    const named = 'can only access node lease with the same name as the requesting node';
    expect([lease({}), lease({ name: 'n2' })]).toEqual(['', named]);
    expect(lease({ namespace: 'default' })).toBe('can only access leases in the namespace "kube-node-lease"');
    const created = (name: string, body?: string) =>
      lease({ verb: 'create', name, object: body === undefined ? {} : { metadata: { name: body } } });
    expect([created('', 'n1'), created('n1'), created('n1', 'n1')]).toEqual(['', '', '']);
    expect([created('', 'n2'), created('n1', 'n2'), created('')]).toEqual([named, named, named]);
    expect(lease({ verb: 'update', object: { metadata: { name: 'n2' } } })).toBe('');
    const ofCsi = 'can only access CSINode with the same name as the requesting node';
    expect([csi({}), csi({ name: 'n2' })]).toEqual(['', ofCsi]);
    expect(csi({ verb: 'create', name: '', object: { metadata: { name: 'n1' } } })).toBe('');
  });

  it('of other groups have rules of their own', () => {
    for (const resource of ['leases', 'csinodes', 'pods', 'nodes'])
      expect(refusalOf({ apiGroup: 'example.com', resource, name: 'n2' })).toBe('');
  });

  it('are of no concern for people, and refused to a node without a name', () => {
    const person = { name: 'ada', groups: ['dev'] };
    expect(refusalOf({ user: person, name: 'n2' })).toBe('');
    expect(refusalOf({ user: { name: 'ada', groups: ['system:nodes'] }, resource: 'events' })).toBe(
      'could not determine node from user "ada"',
    );
  });
});

describe('a token', () => {
  const ref = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
  const tokens = (...audiences: (string | undefined)[]) => ({
    projected: { sources: audiences.map((audience) => ({ serviceAccountToken: { audience } })) },
  });
  const volumes = [{ emptyDir: {} }, { projected: { sources: [{ secret: {} }] } }, tokens(undefined, 'vault')];
  const podWith = (more: object = {}): RestrictedObject => ({
    metadata: { uid: 'u' },
    spec: { nodeName: 'n1', volumes },
    ...more,
  });
  const fault = (more: object = {}) =>
    tokenRequestFault('n1', { boundObjectRef: ref, audiences: [], pod: podWith(), ...more });

  it('is bound to a pod of the node that needs it', () => {
    expect([fault(), fault({ audiences: ['vault'] })]).toEqual([undefined, undefined]);
    expect(fault({ audiences: ['bank'] })).toBe('audience "bank" not found in pod spec volume');
    expect(fault({ audiences: ['vault', 'vault'] })).toBe('node may only request 0 or 1 audiences');
    const other = { metadata: { uid: 'u' }, spec: { nodeName: 'n2', volumes } };
    expect(fault({ pod: other })).toBe('node requested token bound to a pod scheduled on a different node');
    const annotations = { 'kubernetes.io/config.mirror': 'x' };
    expect(fault({ pod: podWith({ metadata: { uid: 'u', annotations } }) })).toBe(
      'node requested token for a mirror pod',
    );
    expect(fault({ pod: podWith({ metadata: { uid: 'v' } }) })).toMatch(/\(u\) does not match the UID in record \(v\)/);
    expect(fault({ pod: undefined })).toMatch(/\(undefined\)/);
    const bare = podWith({ spec: { nodeName: 'n1', volumes: [tokens('vault')] } });
    expect([fault({ pod: bare }), fault({ pod: podWith({ spec: { nodeName: 'n1' } }) })]).toEqual([
      'audience "" not found in pod spec volume',
      'audience "" not found in pod spec volume',
    ]);
  });

  it.each([
    [undefined, 'node requested token not bound to a pod'],
    [{ ...ref, apiVersion: 'v2' }, 'node requested token not bound to a pod'],
    [{ ...ref, kind: 'Secret' }, 'node requested token not bound to a pod'],
    [{ ...ref, name: '' }, 'node requested token not bound to a pod'],
    [{ apiVersion: 'v1', kind: 'Pod', uid: 'u' }, 'node requested token not bound to a pod'],
    [{ ...ref, uid: '' }, 'node requested token with a pod binding without a uid'],
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }, 'node requested token with a pod binding without a uid'],
    [ref, undefined],
  ])('with the reference %j: %s', (boundObjectRef, why) => {
    expect(podReferenceFault(boundObjectRef)).toBe(why);
    expect(fault({ boundObjectRef })).toBe(why);
  });
});

it('labels that were added, removed or changed are named in order', () => {
  expect(changedLabelKeys({ a: '1', b: '1', d: '1' }, { a: '1', b: '2', c: '1' })).toEqual(['b', 'c', 'd']);
  expect(changedLabelKeys(undefined, { a: '' })).toEqual(['a']);
  expect(changedLabelKeys({ a: '' }, undefined)).toEqual(['a']);
  expect(changedLabelKeys(undefined, undefined)).toEqual([]);
  // Not a property that every object inherits.
  expect(changedLabelKeys({}, { toString: 'x' })).toEqual(['toString']);
});
