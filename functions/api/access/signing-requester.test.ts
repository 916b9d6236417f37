import { beforeEach, describe, expect, it } from 'vitest';
import { type BootstrapTokenStore, bootstrapTokenStore } from '../../../shared/access/bootstrap-token-store.ts';
import { type NodeKeyStore, nodeKeyStore } from '../../../shared/access/node-key-store.ts';
import {
  type CertificateRequest,
  readCertificateRequest,
} from '../../../shared/kinds/certificates/certificate-request.ts';
import { type MemoryItemStore, memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { makeRequest } from '../../../test/support/certificate-request.ts';
import type { EnrolDependencies } from './enrol-node.ts';
import { refuseSigningRequests, type SigningRequester } from './signing-requester.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 1, 0, 30);
const CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';
const node = { username: 'system:node:n1', groups: ['system:nodes'] };
const bearer = { username: 'system:bootstrap:token0', groups: ['system:bootstrappers'] };

async function requestFor(commonName: string, algorithm?: Record<string, unknown> & { name: string }) {
  const read = readCertificateRequest((await makeRequest({ commonName, ...(algorithm && { algorithm }) })).request);
  if (read.kind !== 'request') throw new Error(read.kind);
  return read.request;
}

let items: MemoryItemStore;
let identities: NodeKeyStore;
let tokens: BootstrapTokenStore;
let request: CertificateRequest;
let refuse: (more: Partial<SigningRequester>) => Promise<string | undefined>;

beforeEach(async () => {
  items = memoryItemStore();
  [identities, tokens] = [nodeKeyStore(items), bootstrapTokenStore(items)];
  request = await requestFor('system:node:n1');
  const enrolment: EnrolDependencies = {
    identities,
    tokens,
    hasNode: async () => false,
    random: { uuid: () => 'u', fraction: () => 0 },
    pause: async () => {},
  };
  refuse = (more) =>
    refuseSigningRequests(
      items,
      enrolment,
    )({ user: node, signerName: CLIENT, request, nowMs: NOW_MS, dryRun: false, ...more });
});

const makeToken = (more: object = {}) => {
  const bare = { id: 'token0', uid: 'u', createdAtMs: 0, secretSha256: '', reissue: false };
  return tokens.create({ ...bare, expiresAtMs: NOW_MS + 10 * HOUR_MS, uses: 2, usesLeft: 2, ...more });
};
const counts = () => items.items('control').filter(({ pk }) => pk === 'signing-requests');

describe('a machine', () => {
  it('uses up no requests of another one, also with a name that was chosen for its hash', async () => {
    // Both have the same textHash (shared/text.ts).
    const [chosen, other] = ['system:node:n98078', 'system:node:n650212'];
    const asked = (username: string) => refuse({ user: { ...node, username }, signerName: 'example.com/own' });
    for (let made = 0; made < 60; made += 1) expect(await asked(chosen!)).toBeUndefined();
    expect(await asked(chosen!)).toMatch(/may create no more/);
    expect(await asked(other!)).toBeUndefined();
  });

  it('asks the signers of kubelets for its own name only, and others for any', async () => {
    const other = await requestFor('system:node:n2');
    for (const signerName of [CLIENT, SERVING]) {
      expect(await refuse({ signerName })).toBeUndefined();
      expect(await refuse({ signerName, request: other })).toBe('can only create a node CSR with CN=system:node:n1');
    }
    expect(await refuse({ signerName: 'example.com/own', request: other })).toBeUndefined();
    expect(counts()).toMatchObject([{ n: 3 }]);
  });

  it('has sixty requests in each hour, of its own', async () => {
    for (let made = 0; made < 60; made += 1) expect(await refuse({ nowMs: NOW_MS + made })).toBeUndefined();
    expect(await refuse({})).toBe(
      'system:node:n1 has created 60 certificate signing requests this hour, and may create no more',
    );
    expect(await refuse({ dryRun: true })).toBeUndefined();
    const n2 = { ...node, username: 'system:node:n2' };
    expect(await refuse({ user: n2, request: await requestFor('system:node:n2') })).toBeUndefined();
    expect(await refuse({ nowMs: NOW_MS + HOUR_MS / 2 - 1 })).toMatch(/may create no more/);
    expect(await refuse({ nowMs: NOW_MS + HOUR_MS / 2 })).toBeUndefined();
    const kept = counts().map(({ n, ttl }) => `${n} for ${(Number(ttl) * 1_000 - NOW_MS) / HOUR_MS} h`);
    expect(kept.toSorted()).toEqual(['1 for 1.5 h', '1 for 2.5 h', '60 for 1.5 h']);
  });

  it('counts nothing in a dry run', async () => {
    expect(await refuse({ dryRun: true })).toBeUndefined();
    expect(counts()).toEqual([]);
  });

  it('without a name asks for none', async () => {
    const nameless = { username: 'n1', groups: ['system:nodes'] };
    expect(await refuse({ user: nameless })).toBe('can only create a node CSR with CN=n1');
  });
});

it('people are not limited here', async () => {
  expect(await refuse({ user: { username: 'ada', groups: ['dev'] }, signerName: 'x/y' })).toBeUndefined();
  expect(counts()).toEqual([]);
});

describe('a bootstrap token', () => {
  const asBearer = (more: Partial<SigningRequester> = {}) => refuse({ user: bearer, ...more });

  it('asks four times per use for the certificate of a machine that it may enrol', async () => {
    await makeToken();
    for (let made = 0; made < 8; made += 1) expect(await asBearer()).toBeUndefined();
    expect(await asBearer()).toMatch(/^system:bootstrap:token0 has created 8 /);
    expect((await tokens.find('token0'))?.usesLeft).toBe(2);
    expect(await identities.read('n1')).toBeUndefined();
  });

  it('must exist, and be one', async () => {
    const why = 'only a bootstrap token that exists may ask for the certificate of a machine';
    expect(await asBearer()).toBe(why);
    await makeToken();
    const instance = { username: 'system:instance:token0', groups: ['system:bootstrappers'] };
    expect(await refuse({ user: instance })).toBe(why);
    await makeToken({ id: 'tem:bootstrap:token0' });
    expect(await refuse({ user: { ...bearer, username: 'token0' } })).toBe(why);
  });

  it.each([
    ['another signer', { signerName: SERVING }, /of a machine only/],
    ['an RSA key', {}, /^the key must be a public key of P-256 or Ed25519$/],
    ['a person', {}, /of a machine only/],
    ['a name that is none', {}, /^node "N1": a lowercase RFC 1123/],
  ] as const)('asks for no certificate of %s', async (what, more, why) => {
    await makeToken();
    const rsa = {
      ...{ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2_048 },
      publicExponent: new Uint8Array([1, 0, 1]),
    };
    const asked =
      what === 'an RSA key'
        ? await requestFor('system:node:n1', rsa)
        : await requestFor(
            what === 'a person' ? 'ada' : what === 'another signer' ? 'system:node:n1' : 'system:node:N1',
          );
    expect(await asBearer({ ...more, request: asked })).toMatch(why);
    expect(counts()).toEqual([]);
  });

  it('asks for no machine that it may not enrol', async () => {
    await makeToken({ nodeNamePattern: 'x*' });
    expect(await asBearer()).toMatch(/is for names like "x\*"/);
    expect(counts()).toEqual([]);
  });

  it('asks for no machine with keys', async () => {
    await makeToken();
    await identities.enrol(
      { nodeName: 'n1', uid: 'u', createdAtMs: 0, keys: [], source: 'user/ada' },
      { nowMs: NOW_MS, along: [], pause: async () => {} },
    );
    expect(await asBearer()).toBe('node n1 has an identity: bootstrap token token0 was not created with --reissue');
  });
});
