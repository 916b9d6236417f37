/** Keys and their thumbprints: RFC 8037 appendix A.3 (Ed25519), RFC 9449 figures 2 and 9 (P-256). */
import { describe, expect, it } from 'vitest';
import { readPublicKey } from './public-keys.ts';

const ED25519 = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
const P256 = {
  kty: 'EC',
  crv: 'P-256',
  x: 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs',
  y: '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA',
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
    expect(readPublicKey({ ...P256, kid: 'another', use: 'sig' })).toEqual({
      kind: 'key',
      keyId: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
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

  it('is of P-256 or Ed25519', () => {
    expect(readPublicKey({ ...P256, crv: 'P-384' })).toEqual({
      kind: 'invalid',
      why: 'must be a public key of P-256 or Ed25519',
    });
  });
});
