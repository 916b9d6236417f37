import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { readPublicKey } from '../shared/access/public-keys.ts';
import { type Authority, makeAuthority, makeServerCertificate } from '../shared/host/certificate.ts';
import { makeClientCertificate } from '../test/support/client-certificate.ts';
import { certificateHeader, clientCertificates, withCertificate } from './client-certificate.ts';

const NOW_MS = Date.UTC(2026, 0, 10);
const DAY_MS = 86_400_000;
const validity = { nowMs: NOW_MS, validDays: 1 };
let authority: Authority;
let stranger: Authority;
beforeAll(async () => {
  authority = await makeAuthority({ commonName: 'people', ...validity });
  stranger = await makeAuthority({ commonName: 'people', ...validity });
});

/** Keys of machines: what their certificates are checked with. */
const keys = new Set<string>();
const authenticator = clientCertificates(
  {
    authenticate: async ({ authorization }) =>
      authorization === undefined
        ? { kind: 'anonymous' }
        : { kind: 'authenticated', user: { username: 'by-token', groups: [] } },
  },
  async ({ nodeName, keyId }) => keys.has(`${nodeName} ${keyId}`),
);

async function userOf(certificatePem: string, headers: Record<string, string> = {}, nowMs = NOW_MS, isOwn = false) {
  const certificate = new X509Certificate(authority.certificatePem);
  const header = certificateHeader(new X509Certificate(certificatePem), [{ certificate, isOwn }]);
  const outcome = await authenticator.authenticate(withCertificate(headers, header), nowMs);
  return outcome.kind === 'authenticated' ? outcome.user : outcome.kind;
}
const clientOf = async (commonName: string, organizations: readonly string[], by = authority) =>
  (await makeClientCertificate(by, { commonName, organizations, ...validity })).certificatePem;

it('the common name is the user, and each organization a group', async () => {
  const node = await clientOf('system:node:n1', ['system:nodes']);
  const groups = ['system:nodes', 'system:authenticated'];
  expect(await userOf(node)).toEqual({ username: 'system:node:n1', groups });
  const ada = await clientOf('ada', ['dev', 'ops']);
  expect(await userOf(ada)).toMatchObject({ groups: ['dev', 'ops', 'system:authenticated'] });
  expect(await userOf(ada, { authorization: 'Bearer x' })).toMatchObject({ username: 'ada' });
});

it('a certificate of a stranger of the same name, of a server, of an authority, or without a name is no user', async () => {
  expect(await userOf(await clientOf('ada', [], stranger))).toBe('anonymous');
  const server = await makeServerCertificate(authority, { names: ['ada'], ...validity });
  expect(await userOf(server.certificatePem)).toBe('anonymous');
  expect(await userOf(authority.certificatePem)).toBe('anonymous');
  expect(await userOf(await clientOf('', ['dev']))).toBe('anonymous');
});

it('a certificate counts in its time only, also on a connection that outlives it', async () => {
  const ada = await clientOf('ada', []);
  for (const nowMs of [NOW_MS - 2 * DAY_MS, NOW_MS + 2 * DAY_MS]) {
    expect(await userOf(ada, {}, nowMs)).toBe('refused');
    expect(await userOf(ada, { authorization: 'Bearer x' }, nowMs)).toMatchObject({ username: 'by-token' });
  }
});

it('a machine that our own authority certified signs in while it has the key', async () => {
  const machine = await clientOf('system:node:n1', ['system:nodes']);
  const own = (pem: string, headers = {}) => userOf(pem, headers, NOW_MS, true);
  expect(await own(machine)).toBe('refused');
  expect(await own(machine, { authorization: 'Bearer x' })).toMatchObject({ username: 'by-token' });
  const key = readPublicKey(
    new X509Certificate(machine).publicKey.export({ format: 'jwk' }) as Record<string, unknown>,
  );
  if (key.kind === 'invalid') throw new Error(key.why);
  keys.add(`n1 ${key.keyId}`);
  expect(await own(machine)).toMatchObject({
    username: 'system:node:n1',
    extra: { 'nodekeeper.dev/key-id': [key.keyId] },
  });
  expect(await own(await clientOf('system:node:n1', ['system:nodes']))).toBe('refused');
  expect(await own(await clientOf('somebody', ['system:nodes']))).toBe('anonymous');
  expect(await own(await clientOf('ada', ['dev']))).toMatchObject({ username: 'ada' });
  // It signs for no administrator: such a certificate is somebody's who has found a way around that.
  expect(await own(await clientOf('ada', ['dev', 'system:masters']))).toBe('anonymous');
  expect(await userOf(await clientOf('ada', ['system:masters']))).toMatchObject({ username: 'ada' });
});
