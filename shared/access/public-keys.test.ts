/** Vectors: RFC 8037 appendix A.3; RFC 7515 appendix A.3.1 for the key of P-256. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readPublicKey } from './public-keys.ts';

const ED25519 = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
const P256 = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
/** The same number in other letters: the last one has two bits that belong to no byte. */
const respelt = (text: string): string => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return text.slice(0, -1) + letters[letters.indexOf(text.at(-1)!) + 1];
};

describe('a public key', () => {
  it('is named by the hash of its members', () => {
    expect(readPublicKey(ED25519)).toEqual({
      kind: 'key',
      keyId: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
      algorithm: 'EdDSA',
      publicKey: ED25519,
    });
    const members = `{"crv":"P-256","kty":"EC","x":"${P256.x}","y":"${P256.y}"}`;
    expect(readPublicKey({ ...P256, kid: 'another', use: 'sig' })).toEqual({
      kind: 'key',
      keyId: createHash('sha256').update(members).digest('base64url'),
      algorithm: 'ES256',
      publicKey: P256,
    });
  });

  it.each([
    ['x of P-256', { ...P256, x: respelt(P256.x) }],
    ['y of P-256', { ...P256, y: respelt(P256.y) }],
    ['x of Ed25519', { ...ED25519, x: respelt(ED25519.x) }],
  ])('has one spelling of its %s', (_, key) => {
    expect(readPublicKey(key)).toEqual({ kind: 'invalid', why: 'is not in its canonical form' });
  });

  it('is a point on its curve', () => {
    expect(readPublicKey({ ...P256, y: P256.x })).toEqual({ kind: 'invalid', why: 'is no point on its curve' });
  });

  it.each([
    { ...P256, y: undefined },
    { ...P256, crv: 'P-384' },
    { ...P256, kty: 'OKP' },
    { ...ED25519, kty: 'EC' },
    { ...ED25519, crv: 'X25519' },
    { ...ED25519, x: 'short' },
    {},
  ])('is of P-256 or Ed25519, unlike %j', (key) => {
    expect(readPublicKey(key)).toEqual({ kind: 'invalid', why: 'must be a public key of P-256 or Ed25519' });
  });
});
