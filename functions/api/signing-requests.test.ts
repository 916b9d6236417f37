/** Who may create, approve and sign CertificateSigningRequests. */
import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { makeRequest, type RequestToMake } from '../../test/support/certificate-request.ts';
import { CLUSTER_ID, IdentityCluster } from '../../test/support/identity-cluster.ts';
import { nodeKeyPair, nodeToken } from '../../test/support/node-key-pair.ts';

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const USERS = {
  ada: { name: 'ada', groups: [] },
};
const as = (who: keyof typeof USERS) => ({ headers: { authorization: `Bearer ${who}` } });

async function bodyOf(wanted: RequestToMake, signerName = 'kubernetes.io/kube-apiserver-client') {
  const { request } = await makeRequest(wanted);
  return { metadata: { generateName: 'csr-' }, spec: { request, signerName, usages: ['client auth'] } };
}

/** A cluster where the user ada has these verbs on these signers. */
async function clusterOf(verbs: readonly string[], signers: readonly string[]) {
  const api = apiInMemory({ users: USERS });
  const group = 'certificates.k8s.io';
  const rules = [
    { verbs, apiGroups: [group], resources: ['signers'], resourceNames: signers },
    {
      verbs: ['update'],
      apiGroups: [group],
      resources: ['approval', 'status'].map((part) => `certificatesigningrequests/${part}`),
    },
  ];
  await api.send('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'r' }, rules } });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' };
  const subjects = [{ kind: 'User', name: 'ada' }];
  await api.send('POST', `${RBAC}/clusterrolebindings`, { body: { metadata: { name: 'b' }, roleRef, subjects } });
  const { body } = await api.send('POST', REQUESTS, { body: await bodyOf({ commonName: 'eve' }) });
  api.advance(60_000);
  const path = `${REQUESTS}/${body.metadata.name}`;
  const write = async (part: string, type: string) => {
    const { body: current } = await api.send('GET', path);
    const conditions = [...(current.status.conditions ?? []), { type, status: 'True' }];
    return (await api.send('PUT', `${path}/${part}`, { body: { ...current, status: { conditions } }, ...as('ada') }))
      .code;
  };
  return { approve: () => write('approval', 'Approved'), fail: () => write('status', 'Failed') };
}

describe('a signer', () => {
  it.each([
    ['none', [], ['kubernetes.io/kube-apiserver-client'], 403, 403],
    ['approve', ['approve'], ['kubernetes.io/kube-apiserver-client'], 200, 403],
    ['sign', ['sign'], ['kubernetes.io/kube-apiserver-client'], 403, 200],
    ['approve for its domain', ['approve'], ['kubernetes.io/*'], 200, 403],
    ['approve for another signer', ['approve'], ['kubernetes.io/kubelet-serving'], 403, 403],
  ])('with the verb %s', async (_, verbs, signers, approved, failed) => {
    const api = await clusterOf(verbs.length === 0 ? ['get'] : verbs, signers);
    expect([await api.approve(), await api.fail()]).toEqual([approved, failed]);
  });
});

describe('a user without a verb on any signer', () => {
  it('may write a status that is the same, and delete a request', async () => {
    const api = apiInMemory({ users: USERS });
    const rules = [
      {
        verbs: ['update', 'delete'],
        apiGroups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests', 'certificatesigningrequests/status'],
      },
    ];
    await api.send('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'r' }, rules } });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' };
    const subjects = [{ kind: 'User', name: 'ada' }];
    await api.send('POST', `${RBAC}/clusterrolebindings`, { body: { metadata: { name: 'b' }, roleRef, subjects } });
    const { body } = await api.send('POST', REQUESTS, { body: await bodyOf({ commonName: 'eve' }) });
    api.advance(60_000);
    const path = `${REQUESTS}/${body.metadata.name}`;
    const put = (subresource: string, object: object) =>
      api.send('PUT', `${path}${subresource}`, { body: object, ...as('ada') });
    expect((await put('/status', body)).code).toBe(200);
    const { body: current } = await api.send('GET', path);
    expect((await put('', { ...current, metadata: { ...current.metadata, labels: { a: 'b' } } })).code).toBe(200);
    const failed = { conditions: [{ type: 'Failed', status: 'True' }] };
    const { body: last } = await api.send('GET', path);
    expect(await put('/status', { ...last, status: failed })).toMatchObject({
      code: 403,
      body: {
        message: expect.stringContaining(
          'user not permitted to sign requests with signerName "kubernetes.io/kube-apiserver-client"',
        ),
      },
    });
    expect((await api.send('DELETE', path, as('ada'))).code).toBe(200);
  });
});

describe('a request', () => {
  it.each(['system:masters', 'nodekeeper:admins'])('for the group %s is refused to everybody', async (group) => {
    const api = apiInMemory();
    const body = await bodyOf({ commonName: 'ada', organizations: ['dev', group] });
    expect(await api.send('POST', REQUESTS, { body })).toMatchObject({
      code: 403,
      body: { message: expect.stringContaining(`signer with ${group} group is not allowed`) },
    });
  });

  it('has the author who created it, by an apply as well', async () => {
    const api = apiInMemory();
    const { spec } = await bodyOf({ commonName: 'ada' });
    const forged = { username: 'eve', groups: ['system:masters'], uid: '7', extra: { 'nodekeeper.dev/key-id': ['k'] } };
    const body = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'r' },
      spec: { ...spec, ...forged },
    };
    const posted = await api.send('POST', REQUESTS, { body: { ...body, metadata: { name: 'posted' } } });
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const applied = await api.send('PATCH', `${REQUESTS}/r?fieldManager=m`, { body, headers });
    expect([posted.code, applied.code]).toEqual([201, 201]);
    expect(applied.body.spec).toEqual(posted.body.spec);
    expect(applied.body.spec).toMatchObject({ username: 'tester' });
    expect(applied.body.spec.extra).toBeUndefined();
  });

  it('with a signature that its key did not make is refused', async () => {
    const api = apiInMemory();
    const body = await bodyOf({ commonName: 'ada' });
    const pem = Buffer.from(body.spec.request, 'base64').toString();
    const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
    // The last byte belongs to the signature.
    der[der.length - 1]! ^= 1;
    const text = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    const request = Buffer.from(text).toString('base64');
    expect(await api.send('POST', REQUESTS, { body: { ...body, spec: { ...body.spec, request } } })).toMatchObject({
      code: 422,
      body: {
        details: {
          causes: [
            { field: 'spec.request', message: expect.stringContaining('is not signed by the key that it contains') },
          ],
        },
      },
    });
  });
});

it('a request that nothing deletes expires two days after it was written', async () => {
  const api = apiInMemory();
  const body = { ...(await bodyOf({ commonName: 'ada' })), metadata: { name: 'r' } };
  expect((await api.send('POST', REQUESTS, { body })).code).toBe(201);
  api.advance(2 * 86_400_000 - 1_000);
  expect((await api.send('POST', REQUESTS, { body })).code).toBe(409);
  api.advance(2_000);
  expect((await api.send('POST', REQUESTS, { body })).code).toBe(201);
});

describe('a machine', () => {
  it('asks for 60 certificates in an hour, and not more', async () => {
    const cluster = new IdentityCluster();
    const pair = nodeKeyPair();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    const newToken = () => nodeToken(pair, { nodeName: 'n1', nowMs: cluster.nowMs, clusterId: CLUSTER_ID });
    const body = await bodyOf({ commonName: 'system:node:n1' }, KUBELET_SIGNER);
    const ask = async () => (await cluster.send('POST', REQUESTS, newToken(), body)).code;
    // The last half hour before a full hour.
    cluster.nowMs += 1_800_000;
    expect((await cluster.send('POST', `${REQUESTS}?dryRun=All`, newToken(), body)).code).toBe(201);
    for (let made = 0; made < 30; made += 1) expect(await ask()).toBe(201);
    cluster.nowMs += 1_799_999;
    for (let made = 0; made < 30; made += 1) expect(await ask()).toBe(201);
    const token = newToken();
    expect(await cluster.send('POST', REQUESTS, token, body)).toMatchObject({
      code: 403,
      body: { message: expect.stringContaining('system:node:n1 has created 60 certificate signing requests') },
    });
    expect((await cluster.send('DELETE', REQUESTS, token)).code).toBe(403);
    const counts = cluster.items.items('control').filter(({ pk }) => pk === 'signing-requests');
    expect(counts).toMatchObject([{ n: 60, ttl: Date.UTC(2026, 0, 1, 2) / 1_000 }]);
    cluster.nowMs += 1;
    expect(await ask()).toBe(201);
  });
});

describe('a bootstrap token', () => {
  const ask = async (cluster: IdentityCluster, token: string, wanted: RequestToMake, signer = KUBELET_SIGNER) => {
    const { code, body } = await cluster.send('POST', REQUESTS, token, await bodyOf(wanted, signer));
    return code === 201 ? code : body.message.replace(/^.*is forbidden: /, '');
  };
  const n1 = { commonName: 'system:node:n1', organizations: ['system:nodes'] };

  it('asks for the certificate of a machine that it may enrol', async () => {
    const cluster = new IdentityCluster();
    expect(await ask(cluster, await cluster.bootstrapToken(), n1)).toBe(201);
  });

  it.each([
    ['of another name', { nodes: 'edge-*' }, n1, KUBELET_SIGNER, /is for names like "edge-\*"/],
    [
      'of an administrator',
      {},
      { commonName: 'ada', organizations: ['system:masters'] },
      KUBELET_SIGNER,
      /of a machine only/,
    ],
    ['of another signer', {}, n1, 'kubernetes.io/kube-apiserver-client', /of a machine only/],
    ['for a server', {}, n1, 'kubernetes.io/kubelet-serving', /of a machine only/],
    [
      'of no Node',
      {},
      { commonName: 'system:node:N1' },
      KUBELET_SIGNER,
      /^node "N1": a lowercase RFC 1123 subdomain must/,
    ],
    [
      'of the probe',
      {},
      { commonName: 'system:node:nodekeeper-probe' },
      KUBELET_SIGNER,
      /^node "nodekeeper-probe": is the name of the cluster's own probe$/,
    ],
  ])('does not ask for one %s', async (_, { nodes }: { nodes?: string }, wanted, signer, why) => {
    const cluster = new IdentityCluster();
    const token = await cluster.bootstrapToken(nodes === undefined ? {} : { nodeNamePattern: nodes });
    expect(await ask(cluster, token, wanted, signer)).toMatch(why);
    expect((await cluster.asAdmin('GET', REQUESTS)).body.items).toEqual([]);
  });

  it('does not ask for the name of a machine with keys, or of a Node', async () => {
    const cluster = new IdentityCluster();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', nodeKeyPair());
    await cluster.asAdmin('POST', '/api/v1/nodes', { metadata: { name: 'n2' } });
    const token = await cluster.bootstrapToken();
    expect(await ask(cluster, token, n1)).toMatch(/has an identity: bootstrap token .* was not created with --reissue/);
    expect(await ask(cluster, token, { ...n1, commonName: 'system:node:n2' })).toMatch(/a Node "n2" exists/);
    expect(await ask(cluster, await cluster.bootstrapToken({ reissue: true }), n1)).toBe(201);
  });

  it('asks four times for each of its uses, in its time', async () => {
    const cluster = new IdentityCluster();
    const token = await cluster.bootstrapToken({ uses: 2 });
    for (let made = 0; made < 8; made += 1) expect(await ask(cluster, token, n1)).toBe(201);
    expect(await ask(cluster, token, n1)).toMatch(/has created 8 certificate signing requests this hour/);
    cluster.nowMs += 3_600_000;
    expect(await ask(cluster, token, n1)).toMatch(/has expired/);
  });
});
