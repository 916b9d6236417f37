// The certificate library's own dependency needs it, and before it.
import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { BasicConstraintsExtension } from '@peculiar/x509';
import { beforeAll, describe, expect, it } from 'vitest';
import { enrolmentOver } from '../../functions/api/work.ts';
import { nodeKeyStore } from '../../shared/access/node-key-store.ts';
import { requestDependencies } from '../../shared/api/request-dependencies.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import {
  type Authority,
  type CertifiedKey,
  makeAuthority,
  makeServerCertificate,
} from '../../shared/host/certificate.ts';
import { certificatesigningrequests } from '../../shared/kinds/certificates/serve.ts';
import type { KubeCertificateSigningRequest } from '../../shared/kinds/types.ts';
import { type MadeRequest, makeRequest, P256, type RequestToMake } from '../../test/support/certificate-request.ts';
import { CLUSTER_ID, IDENTITIES, IdentityCluster } from '../../test/support/identity-cluster.ts';
import { nodeKeyPair, nodeToken } from '../../test/support/node-key-pair.ts';
import { isNameIn } from '../certificate.ts';
import { inProcess } from '../system.ts';
import { nextStep } from './next-step.ts';
import { signingRequests } from './signing-requests.ts';

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const N1: RequestToMake = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
const HOUR_MS = 3_600_000;

let authority: Authority;
/** The certificate of the listener. */
let server: CertifiedKey;
beforeAll(async () => {
  const { nowMs } = new IdentityCluster();
  authority = await makeAuthority({ commonName: 'own', nowMs, validDays: 3_650 });
  const names = ['127.0.0.1', '2001:db8::7', 'api.example'];
  server = await makeServerCertificate(authority, { names, nowMs, validDays: 1 });
});

class SigningCluster extends IdentityCluster {
  readonly #dependencies = requestDependencies({
    items: this.items,
    authenticator: { authenticate: async () => ({ kind: 'anonymous' }) },
    clock: { nowMs: () => this.nowMs },
    random: { uuid: () => crypto.randomUUID(), fraction: () => 0 },
    pause: async () => {},
    log: { debug() {}, info() {}, warn() {}, error() {} },
    policy: defaultPolicy,
    gzip: inProcess.gzip,
  });
  readonly storage = this.#dependencies.storageOf(certificatesigningrequests);

  /** One process that signs. */
  signer(requests: Partial<typeof this.storage> = {}) {
    const { storageOf, authorizer } = this.#dependencies;
    const common = {
      items: this.items,
      random: { uuid: () => crypto.randomUUID(), fraction: () => 0 },
      pause: async () => {},
    };
    return signingRequests({
      requests: {
        get: (...of) => this.storage.get(...of),
        list: (of) => this.storage.list(of),
        remove: (of) => this.storage.remove(of),
        update: (...of) => this.storage.update(...of),
        ...requests,
      },
      authorizer,
      enrolment: enrolmentOver(common, storageOf),
      authority,
      isServerName: (name) => isNameIn(server.certificatePem, name),
      clock: { nowMs: () => this.nowMs },
      log: { debug() {}, info() {}, warn() {}, error() {} },
    });
  }

  async ask(token: string | undefined, made: MadeRequest, spec: object = {}, name = 'r'): Promise<number> {
    const body = {
      metadata: { name },
      spec: { request: made.request, signerName: SIGNER, usages: ['digital signature', 'client auth'], ...spec },
    };
    const sent = token === undefined ? this.asAdmin('POST', REQUESTS, body) : this.send('POST', REQUESTS, token, body);
    return (await sent).code;
  }

  async get(name = 'r'): Promise<KubeCertificateSigningRequest> {
    return (await this.asAdmin('GET', `${REQUESTS}/${name}`)).body;
  }

  keys = () => nodeKeyStore(this.items).keysOf('n1', { consistent: true });

  async decide(type: string, name = 'r'): Promise<number> {
    const object = await this.get(name);
    const status = { conditions: [{ type, status: 'True', reason: 'KubectlApprove' }] };
    return (await this.asAdmin('PUT', `${REQUESTS}/${name}/approval`, { ...object, status })).code;
  }
}

const changed = (name = 'r') => [{ type: 'INSERT' as const, key: { pk: 'o#certificatesigningrequests#00', sk: name } }];
const DONE = { faults: [], postponed: [] };
const conditionsOf = ({ status }: KubeCertificateSigningRequest) => (status?.conditions ?? []).map(({ type }) => type);
const certificateOf = ({ status }: KubeCertificateSigningRequest) =>
  new X509Certificate(Buffer.from(status?.certificate ?? '', 'base64'));

describe('the certificate of a machine', () => {
  it('is issued to a bootstrap token, for the key in its request, and counts one use', async () => {
    const cluster = new SigningCluster();
    const made = await makeRequest({ ...N1, extensions: [new BasicConstraintsExtension(true, 3, true)] });
    expect(await cluster.ask(await cluster.bootstrapToken(), made)).toBe(201);
    expect(await cluster.signer().onRecords(changed())).toEqual(DONE);
    const object = await cluster.get();
    expect(conditionsOf(object)).toEqual(['Approved']);
    const certificate = certificateOf(object);
    expect(certificate.verify(new X509Certificate(authority.certificatePem).publicKey)).toBe(true);
    expect([certificate.subject, certificate.ca, certificate.subjectAltName]).toEqual([
      'O=system:nodes\nCN=system:node:n1',
      false,
      undefined,
    ]);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(certificate.validFromDate.getTime()).toBe(cluster.nowMs - 300_000);
    expect(certificate.validToDate.getTime()).toBe(cluster.nowMs - 300_000 + 365 * 86_400_000);
    const { body } = await cluster.asAdmin('GET', '/apis/nodekeeper.dev/v1alpha1/bootstraptokens');
    expect(body.items[0].status.usesLeft).toBe(0);
  });

  it('is not issued to a token without uses left', async () => {
    const cluster = new SigningCluster();
    const token = await cluster.bootstrapToken();
    await cluster.ask(token, await makeRequest(N1));
    await cluster.enrol(token, 'other', nodeKeyPair());
    expect(await cluster.signer().onRecords(changed())).toEqual(DONE);
    expect(conditionsOf(await cluster.get())).toEqual([]);
    expect((await cluster.asAdmin('GET', `${IDENTITIES}/n1`)).code).toBe(404);
  });

  it('is issued to one of two machines that ask for a name', async () => {
    const cluster = new SigningCluster();
    const token = await cluster.bootstrapToken({ uses: 2 });
    for (const name of ['a', 'b']) await cluster.ask(token, await makeRequest(N1), {}, name);
    await Promise.all([cluster.signer().onRecords(changed('a')), cluster.signer().onRecords(changed('b'))]);
    const approved = [await cluster.get('a'), await cluster.get('b')].flatMap(conditionsOf);
    expect(approved).toEqual(['Approved']);
    expect(await cluster.keys()).toHaveLength(1);
  });

  it.each([
    [
      'another group',
      { ...N1, organizations: ['system:nodes', 'dev'] },
      {},
      'organizations ["system:nodes","dev"]: must be "system:nodes" alone',
    ],
    ['no group', { commonName: 'system:node:n1' }, {}, 'organizations []: must be "system:nodes" alone'],
    ['no name', { ...N1, commonName: 'system:node:' }, {}, 'common name "system:node:": the name of the node'],
    ['the name of a user', { ...N1, commonName: 'ada' }, {}, 'common name "ada": must begin with system:node:'],
    ['a name that no Node has', { ...N1, commonName: 'system:node:N1' }, {}, 'the name of the node: a lowercase'],
    ['two names', { ...N1, commonName: 'system:node:n1/n2' }, {}, 'the name of the node: a lowercase'],
    ['a long name', { ...N1, commonName: `system:node:${'n'.repeat(254)}` }, {}, 'must be no more than 253 characters'],
    ['the name of the probe', { ...N1, commonName: 'system:node:nodekeeper-probe' }, {}, "the cluster's own probe"],
    [
      'alternative names',
      { ...N1, alternativeNames: [{ type: 'dns' as const, value: 'api.example' }] },
      {},
      'subjectAltNames are not allowed',
    ],
    [
      'the usages of a server',
      N1,
      { usages: ['digital signature', 'server auth'] },
      'usages ["digital signature","server auth"]: must be "digital signature" and "client auth"',
    ],
    ['more usages', N1, { usages: ['digital signature', 'client auth', 'server auth'] }, 'usages ['],
    [
      'a key of P-384',
      { ...N1, algorithm: { ...P256, namedCurve: 'P-384' } },
      {},
      'key EC P-384: must be EC P-256 or Ed25519',
    ],
  ])('with %s is not approved, and fails when a person approves it', async (_, wanted, spec, why) => {
    const cluster = new SigningCluster();
    const signer = cluster.signer();
    expect(await cluster.ask(undefined, await makeRequest(wanted), spec)).toBe(201);
    expect(await signer.onRecords(changed())).toEqual(DONE);
    expect(conditionsOf(await cluster.get())).toEqual([]);
    await cluster.decide('Approved');
    expect(await signer.onRecords(changed())).toEqual(DONE);
    const object = await cluster.get();
    expect([conditionsOf(object), object.status?.certificate]).toEqual([['Approved', 'Failed'], undefined]);
    expect(object.status?.conditions?.at(-1)?.message).toContain(why);
    expect((await cluster.asAdmin('GET', IDENTITIES)).body.items).toEqual([]);
  });

  it.each([
    ['a user without the right', 'ada', ['system:authenticated']],
    ['another machine', 'system:node:n2', ['system:nodes', 'system:authenticated']],
  ])('is not issued to %s', async (_, username, groups) => {
    const cluster = new SigningCluster();
    await cluster.ask(undefined, await makeRequest(N1));
    // The API would not admit this.
    const stored = await cluster.storage.get('', 'r');
    await cluster.storage.update({ ...stored!, spec: { ...stored!.spec, username, groups } }, stored!);
    await cluster.signer().onRecords(changed());
    expect(conditionsOf(await cluster.get())).toEqual([]);
    expect(await cluster.keys()).toEqual([]);
  });

  it('is not issued to a user who is no machine and acts with its key', async () => {
    const cluster = new SigningCluster();
    const pair = nodeKeyPair();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    await cluster.ask(undefined, await makeRequest(N1));
    const stored = await cluster.storage.get('', 'r');
    const author = { username: 'ada', groups: ['system:masters'], extra: { 'nodekeeper.dev/key-id': [pair.keyId] } };
    await cluster.storage.update({ ...stored!, spec: { ...stored!.spec, ...author } }, stored!);
    await cluster.signer().onRecords(changed());
    expect(conditionsOf(await cluster.get())).toEqual([]);
    expect(await cluster.keys()).toHaveLength(1);
  });

  it('is renewed for the machine, by a key that it has, and the key before the last is removed', async () => {
    const cluster = new SigningCluster();
    const pair = nodeKeyPair();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    const ask = async (name: string) => {
      const token = nodeToken(pair, { nodeName: 'n1', nowMs: cluster.nowMs, clusterId: CLUSTER_ID });
      await cluster.ask(token, await makeRequest(N1), {}, name);
      await cluster.signer().onRecords(changed(name));
      expect(certificateOf(await cluster.get(name)).subject).toContain('CN=system:node:n1');
      return (await cluster.keys()).map(({ keyId }) => keyId);
    };
    const [own, first] = await ask('first');
    const [still, second, ...more] = await ask('second');
    expect([own, still, more]).toEqual([pair.keyId, pair.keyId, []]);
    expect(second).not.toBe(first);
  });

  it('of a name in use is for a person to approve, and the approval adds the key', async () => {
    const cluster = new SigningCluster();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', nodeKeyPair());
    await cluster.ask(undefined, await makeRequest(N1));
    await cluster.signer().onRecords(changed());
    expect(conditionsOf(await cluster.get())).toEqual([]);
    await cluster.decide('Approved');
    await cluster.signer().onRecords(changed());
    expect(certificateOf(await cluster.get()).subject).toContain('CN=system:node:n1');
    expect(await cluster.keys()).toHaveLength(2);
  });
});

describe('a signer', () => {
  it('that ends after any write, or runs twice, issues one certificate for one use', async () => {
    for (let writes = 0; writes < 3; writes += 1) {
      const cluster = new SigningCluster();
      await cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1));
      let left = writes;
      const ending = cluster.signer({
        async update(next, old) {
          if (left === 0) throw new Error('killed');
          left -= 1;
          return cluster.storage.update(next, old);
        },
      });
      await ending.onRecords(changed());
      const two = await Promise.all([1, 2].map(() => cluster.signer().onRecords(changed())));
      expect(two).toEqual([DONE, DONE]);
      const object = await cluster.get();
      expect(conditionsOf(object)).toEqual(['Approved']);
      const { serialNumber } = certificateOf(object);
      await cluster.signer().sweep();
      expect(certificateOf(await cluster.get()).serialNumber).toBe(serialNumber);
      expect(await cluster.keys()).toHaveLength(1);
    }
  });

  it('that cannot process one change has it delivered again, and has processed the others', async () => {
    const cluster = new SigningCluster();
    const token = await cluster.bootstrapToken({ uses: 3 });
    for (const name of ['a', 'b', 'c']) {
      await cluster.ask(token, await makeRequest({ ...N1, commonName: `system:node:${name}` }), {}, name);
    }
    const signer = cluster.signer({
      async update(next, old) {
        if (old.metadata.name === 'b') throw new Error('the disk is full');
        return cluster.storage.update(next, old);
      },
    });
    const outcome = await signer.onRecords(['a', 'b', 'c'].flatMap(changed));
    expect(outcome).toMatchObject({ failedFrom: 1, faults: [{ message: 'the disk is full' }] });
    for (const name of ['a', 'c']) expect(certificateOf(await cluster.get(name)).subject).toContain(name);
    await expect(signer.sweep()).rejects.toThrow('could not be processed');
  });

  it('does not sign a row that was changed after its approval', async () => {
    const other = await makeRequest({ ...N1, commonName: 'system:node:n2' });
    const mine = await makeRequest(N1);
    for (const spec of [{ request: other.request }, { request: (await makeRequest(N1)).request }]) {
      const cluster = new SigningCluster();
      await cluster.ask(await cluster.bootstrapToken(), mine);
      let updates = 0;
      const signer = cluster.signer({
        async update(next, old) {
          updates += 1;
          const tampered = updates === 1 ? { ...next, spec: { ...next.spec, ...spec } } : next;
          return cluster.storage.update(tampered, old);
        },
      });
      await signer.onRecords(changed());
      const object = await cluster.get();
      expect([conditionsOf(object), object.status?.certificate]).toEqual([['Approved', 'Failed'], undefined]);
    }
  });

  it('does not sign for a key that has not signed the request', async () => {
    const cluster = new SigningCluster();
    const spec = { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] };
    await cluster.ask(undefined, await makeRequest({ commonName: 'ada' }), spec);
    await cluster.decide('Approved');
    const object = await cluster.get();
    const pem = Buffer.from(object.spec?.request ?? '', 'base64').toString();
    const der = Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ''), 'base64');
    der[der.indexOf('ada')] = 'e'.charCodeAt(0);
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    const stored = await cluster.storage.get('', 'r');
    const request = Buffer.from(forged).toString('base64');
    await cluster.storage.update({ ...stored!, spec: { ...stored!.spec, request } }, stored!);
    await cluster.signer().onRecords(changed());
    expect((await cluster.get()).status?.conditions?.at(-1)).toMatchObject({
      type: 'Failed',
      message: 'the request is not signed by the key that it contains',
    });
  });

  it('does not sign for a machine that was removed after its approval', async () => {
    const cluster = new SigningCluster();
    await cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1));
    const identities = nodeKeyStore(cluster.items);
    const signer = cluster.signer({
      async update(next, old) {
        const identity = await identities.read('n1');
        if (identity !== undefined) await identities.remove('n1', identity);
        return cluster.storage.update(next, old);
      },
    });
    await signer.onRecords(changed());
    expect(conditionsOf(await cluster.get())).toEqual(['Approved', 'Failed']);
  });

  it.each([
    [
      'a name of the API',
      { alternativeNames: [{ type: 'dns' as const, value: 'API.example' }] },
      'may be a name of the API',
    ],
    [
      'an address of the API',
      { alternativeNames: [{ type: 'ip' as const, value: '127.0.0.1' }] },
      'may be a name of the API',
    ],
    [
      'an address of the API in another spelling',
      { alternativeNames: [{ type: 'ip' as const, value: '2001:db8:0:0:0:0:0:7' }] },
      'may be a name of the API',
    ],
    [
      // Go's clients compare it with an IPv4 address.
      'an address of the API in the form of IPv6',
      { alternativeNames: [{ type: 'ip' as const, value: '0:0:0:0:0:ffff:7f00:1' }] },
      'may be a name of the API',
    ],
    [
      // Node's clients ignore the dot.
      'a name of the API with the dot of the root',
      { alternativeNames: [{ type: 'dns' as const, value: 'api.example.' }] },
      'may be a name of the API',
    ],
    [
      'a name like an address with a zone',
      { alternativeNames: [{ type: 'dns' as const, value: '2001:db8::7%eth0' }] },
      'may be a name of the API',
    ],
    ['every name', { alternativeNames: [{ type: 'dns' as const, value: '*.example' }] }, 'may be a name of the API'],
    [
      'an email address',
      {
        alternativeNames: [
          { type: 'dns' as const, value: 'n1' },
          { type: 'email' as const, value: 'a@b.c' },
        ],
      },
      'only DNS and IP subjectAltNames are allowed',
    ],
    ['no name', {}, 'DNS or IP subjectAltName is required'],
    ['its own name', { alternativeNames: [{ type: 'dns' as const, value: 'n1' }] }, undefined],
  ])('of kubelets as servers, asked for %s', async (_, names, why) => {
    const cluster = new SigningCluster();
    const spec = { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
    await cluster.ask(undefined, await makeRequest({ ...N1, ...names }), spec);
    await cluster.signer().onRecords(changed());
    expect(conditionsOf(await cluster.get())).toEqual([]);
    await cluster.decide('Approved');
    await cluster.signer().onRecords(changed());
    const object = await cluster.get();
    expect(object.status?.conditions?.find(({ type }) => type === 'Failed')?.message ?? '').toContain(why ?? '');
    if (why === undefined) expect(certificateOf(object).keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    else expect(object.status?.certificate).toBeUndefined();
  });

  it('of servers looks at the names once a person has approved them: a request may have thousands', async () => {
    const cluster = new SigningCluster();
    const spec = { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
    await cluster.ask(undefined, await makeRequest({ ...N1, alternativeNames: [{ type: 'dns', value: 'n1' }] }), spec);
    let asked = 0;
    const isServerName = (): boolean => {
      asked += 1;
      return false;
    };
    const circumstances = { nowMs: cluster.nowMs, authorityEndsAtMs: cluster.nowMs + HOUR_MS, isServerName };
    expect([nextStep(await cluster.get(), circumstances).kind, asked]).toEqual(['none', 0]);
    await cluster.decide('Approved');
    expect([nextStep(await cluster.get(), circumstances).kind, asked]).toEqual(['sign', 1]);
  });

  it('leaves a row with a key that is no point of its curve', async () => {
    const cluster = new SigningCluster();
    const token = await cluster.bootstrapToken();
    await cluster.ask(token, await makeRequest(N1));
    const stored = await cluster.storage.get('', 'r');
    const pem = Buffer.from((await cluster.get()).spec?.request ?? '', 'base64').toString();
    const der = Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ''), 'base64');
    const point = der.indexOf(Buffer.from('03420004', 'hex')) + 4;
    der.fill(0xff, point, point + 32);
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    const request = Buffer.from(forged).toString('base64');
    await cluster.storage.update({ ...stored!, spec: { ...stored!.spec, request } }, stored!);
    expect(await cluster.signer().onRecords(changed())).toEqual(DONE);
    expect(conditionsOf(await cluster.get())).toEqual([]);
  });

  it.each([
    ['machines', ['system:nodes'], ['client auth'], 'the group system:nodes is not for this signer'],
    [
      'bootstrap tokens',
      ['dev', 'system:bootstrappers'],
      ['client auth'],
      'the group system:bootstrappers is not for this signer',
    ],
    ['probes', ['dev', 'nodekeeper:probes'], ['client auth'], 'the group nodekeeper:probes is not for this signer'],
    [
      'simulated machines',
      ['dev', 'nodekeeper:simulated-fleet'],
      ['client auth'],
      'the group nodekeeper:simulated-fleet is not for this signer',
    ],
    ['servers', [], ['client auth', 'server auth'], 'invalid usage for client certificate: server auth'],
    ['signatures', [], ['digital signature'], 'missing required usage for client certificate: client auth'],
  ])('of users does not certify %s', async (_, organizations, usages, why) => {
    const cluster = new SigningCluster();
    const spec = { signerName: 'kubernetes.io/kube-apiserver-client', usages };
    await cluster.ask(undefined, await makeRequest({ commonName: 'ada', organizations }), spec);
    await cluster.decide('Approved');
    await cluster.signer().onRecords(changed());
    expect((await cluster.get()).status?.conditions?.at(-1)).toMatchObject({ type: 'Failed', message: why });
  });

  it.each(['"system:masters"', 'system:\\masters', '#0c0e73797374656d3a6d617374657273', '#zz', 'a, O=system:masters'])(
    'of users certifies the group %s as it is written',
    async (group) => {
      const cluster = new SigningCluster();
      const spec = { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] };
      await cluster.ask(undefined, await makeRequest({ commonName: 'ada\\', organizations: [group] }), spec);
      await cluster.decide('Approved');
      expect(await cluster.signer().onRecords(changed())).toEqual(DONE);
      expect(certificateOf(await cluster.get()).toLegacyObject().subject).toEqual({ O: group, CN: 'ada\\' });
    },
  );

  it('leaves the requests of other signers, and denied ones', async () => {
    const cluster = new SigningCluster();
    await cluster.ask(undefined, await makeRequest(N1), { signerName: 'example.com/signer' });
    await cluster.ask(undefined, await makeRequest(N1), {}, 'denied');
    await cluster.decide('Approved');
    await cluster.decide('Denied', 'denied');
    for (const name of ['r', 'denied']) await cluster.signer().onRecords(changed(name));
    expect(conditionsOf(await cluster.get())).toEqual(['Approved']);
    expect(conditionsOf(await cluster.get('denied'))).toEqual(['Denied']);
  });

  it.each([
    [600, 600],
    [3_600, 3_600],
    [8 * 3_600, 8 * 3_600 - 300],
    [400 * 86_400, 365 * 86_400 - 300],
  ])('asked for %d seconds signs for %d from now', async (expirationSeconds, seconds) => {
    const cluster = new SigningCluster();
    await cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1), { expirationSeconds });
    await cluster.signer().onRecords(changed());
    const endMs = certificateOf(await cluster.get()).validToDate.getTime();
    expect((endMs - cluster.nowMs) / 1_000).toBe(seconds);
  });

  it('signs for no longer than its own certificate is valid, and then not at all', async () => {
    const cluster = new SigningCluster();
    cluster.nowMs += 3_650 * 86_400_000 - HOUR_MS;
    await cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1));
    await cluster.signer().onRecords(changed());
    expect(certificateOf(await cluster.get()).validToDate).toEqual(
      new X509Certificate(authority.certificatePem).validToDate,
    );
    cluster.nowMs += HOUR_MS;
    await cluster.ask(
      await cluster.bootstrapToken(),
      await makeRequest({ ...N1, commonName: 'system:node:n2' }),
      {},
      'late',
    );
    await cluster.signer().onRecords(changed('late'));
    expect(conditionsOf(await cluster.get('late'))).toEqual(['Approved', 'Failed']);
  });
});

describe('requests are deleted', () => {
  const swept = async (cluster: SigningCluster, afterMs: number): Promise<boolean> => {
    cluster.nowMs += afterMs;
    await cluster.signer().sweep();
    return (await cluster.asAdmin('GET', `${REQUESTS}/r`)).code === 404;
  };

  it.each([
    [
      'issued',
      HOUR_MS,
      async (cluster: SigningCluster) => cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1)),
    ],
    [
      'denied',
      HOUR_MS,
      async (cluster: SigningCluster) => {
        await cluster.ask(undefined, await makeRequest({ commonName: 'ada' }));
        await cluster.decide('Denied');
      },
    ],
    [
      'failed',
      HOUR_MS,
      async (cluster: SigningCluster) => {
        await cluster.ask(undefined, await makeRequest({ commonName: 'ada' }));
        await cluster.decide('Approved');
      },
    ],
    [
      'undecided',
      24 * HOUR_MS,
      async (cluster: SigningCluster) => cluster.ask(undefined, await makeRequest({ commonName: 'a' })),
    ],
    [
      'never signed',
      24 * HOUR_MS,
      async (cluster: SigningCluster) => {
        await cluster.ask(undefined, await makeRequest(N1), { signerName: 'example.com/signer' });
        await cluster.decide('Approved');
      },
    ],
    [
      'issued for ten minutes',
      600_000,
      async (cluster: SigningCluster) =>
        cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1), { expirationSeconds: 600 }),
    ],
  ])('that are %s', async (_, afterMs, make) => {
    const cluster = new SigningCluster();
    await make(cluster);
    await cluster.signer().onRecords(changed());
    expect(await swept(cluster, afterMs)).toBe(false);
    expect(await swept(cluster, 1_000)).toBe(true);
  });

  it('and the sweep does what a lost change did not', async () => {
    const cluster = new SigningCluster();
    await cluster.ask(await cluster.bootstrapToken(), await makeRequest(N1));
    await cluster.signer().sweep();
    expect(certificateOf(await cluster.get()).subject).toContain('n1');
  });
});
