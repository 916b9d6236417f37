import { describe, expect, it } from 'vitest';
import { algorithmOf, isNodeName, keysAfterRotation, type NodeKey, publicKeyOf } from './node-identity.ts';

const x = 'x'.repeat(43);
const y = 'y'.repeat(43);
const key = (keyId: string): NodeKey => ({ keyId, publicKey: { kty: 'OKP', crv: 'Ed25519', x }, addedAtMs: 1 });
const idsAfter = (stored: string[], signing: string, wanted: string) =>
  keysAfterRotation(stored.map(key), signing, key(wanted))?.map(({ keyId }) => keyId);

describe('rotating keys', () => {
  it('keeps the key that signed and adds the wanted one', () => {
    expect(idsAfter(['a'], 'a', 'b')).toEqual(['a', 'b']);
  });
  it('never holds a third key', () => {
    expect(idsAfter(['a', 'b'], 'b', 'c')).toEqual(['b', 'c']);
    expect(idsAfter(['a', 'b'], 'a', 'c')).toEqual(['a', 'c']);
  });
  it('ends when a key asks for itself', () => {
    expect(idsAfter(['a', 'b'], 'b', 'b')).toEqual(['b']);
  });
  it('changes nothing when it is asked again', () => {
    expect(idsAfter(['a', 'b'], 'a', 'b')).toEqual(['a', 'b']);
    expect(idsAfter(['b'], 'b', 'b')).toEqual(['b']);
  });
  it('does not apply to a removed key', () => {
    expect(idsAfter(['b'], 'a', 'c')).toBeUndefined();
  });
});

describe('a public key', () => {
  it('is P-256 or Ed25519, and nothing else', () => {
    expect(publicKeyOf({ kty: 'EC', crv: 'P-256', x, y })).toEqual({ kty: 'EC', crv: 'P-256', x, y });
    expect(publicKeyOf({ kty: 'OKP', crv: 'Ed25519', x })).toEqual({ kty: 'OKP', crv: 'Ed25519', x });
    for (const jwk of [
      { kty: 'oct', k: x },
      { kty: 'RSA', n: x, e: 'AQAB' },
      { kty: 'EC', crv: 'P-384', x, y },
      { kty: 'EC', crv: 'P-256', x },
      { kty: 'OKP', crv: 'X25519', x },
      { kty: 'OKP', crv: 'Ed25519', x: `${x}=` },
      { kty: 'OKP', crv: 'Ed25519', x: 7 },
      {},
    ]) {
      expect(publicKeyOf(jwk), JSON.stringify(jwk)).toBeUndefined();
    }
  });
  it('keeps no private member', () => {
    expect(publicKeyOf({ kty: 'OKP', crv: 'Ed25519', x, d: 'secret' })).toEqual({ kty: 'OKP', crv: 'Ed25519', x });
  });
  it('has one algorithm', () => {
    expect(algorithmOf({ kty: 'EC', crv: 'P-256', x, y })).toBe('ES256');
    expect(algorithmOf({ kty: 'OKP', crv: 'Ed25519', x })).toBe('EdDSA');
  });
});

it('a node name is a DNS subdomain, and not that of the probe’s Lease', () => {
  for (const name of ['a', 'edge-7', 'ip-10-0-0-1.eu-central-1.compute.internal', 'x'.repeat(253)]) {
    expect(isNodeName(name), name).toBe(true);
  }
  for (const name of ['', '-a', 'a-', 'A', 'a..b', '../a', 'a/b', 'a#b', 'ä', 'x'.repeat(254), 'nodekeeper-probe']) {
    expect(isNodeName(name), name).toBe(false);
  }
});
