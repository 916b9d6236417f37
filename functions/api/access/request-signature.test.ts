import { expect, it } from 'vitest';
import {
  type CertificateRequest,
  readCertificateRequest,
} from '../../../shared/kinds/certificates/certificate-request.ts';
import { makeRequest, P256 } from '../../../test/support/certificate-request.ts';
import { isSignedByItsKey, nodeKeyIn } from './request-signature.ts';

async function requestOf(algorithm?: Record<string, unknown> & { readonly name: string }): Promise<CertificateRequest> {
  const { request } = await makeRequest({ commonName: 'system:node:n1', ...(algorithm && { algorithm }) });
  const read = readCertificateRequest(request);
  if (read.kind !== 'request') throw new Error(read.kind);
  return read.request;
}
const changed = (bytes: Uint8Array, at: number): Uint8Array =>
  bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));

it.each([
  ['EC P-256', P256],
  ['Ed25519', { name: 'Ed25519' }],
  [
    'RSA',
    { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2_048, publicExponent: new Uint8Array([1, 0, 1]) },
  ],
])('a request is signed by its key, or it is not: %s', async (_, algorithm) => {
  const request = await requestOf(algorithm);
  expect(isSignedByItsKey(request)).toBe(true);
  const other = await requestOf(algorithm);
  expect(isSignedByItsKey({ ...request, signed: changed(request.signed, 5) })).toBe(false);
  expect(isSignedByItsKey({ ...request, signature: other.signature })).toBe(false);
  expect(isSignedByItsKey({ ...request, publicKey: other.publicKey })).toBe(false);
});

it('what is no key has signed nothing', async () => {
  const request = await requestOf();
  expect(isSignedByItsKey({ ...request, publicKey: new Uint8Array([1, 2, 3]) })).toBe(false);
  // A point that is not on its curve.
  expect(isSignedByItsKey({ ...request, publicKey: changed(request.publicKey, request.publicKey.length - 1) })).toBe(
    false,
  );
});

it('the key of a machine is one of P-256 or Ed25519, by its thumbprint', async () => {
  for (const [algorithm, name] of [
    [P256, 'ES256'],
    [{ name: 'Ed25519' }, 'EdDSA'],
  ] as const) {
    const key = nodeKeyIn(await requestOf(algorithm));
    expect(key).toMatchObject({ kind: 'key', algorithm: name, keyId: expect.stringMatching(/^[\w-]{43}$/) });
  }
  const rsa = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2_048,
    publicExponent: new Uint8Array([1, 0, 1]),
  };
  expect(nodeKeyIn(await requestOf(rsa))).toMatchObject({ kind: 'invalid' });
});
