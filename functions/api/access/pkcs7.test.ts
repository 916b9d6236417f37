import { createPublicKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { documentSigner, OTHER, type OtherParts, pkcs7Of } from '../../../test/support/pkcs7.ts';
import { signedContent } from './pkcs7.ts';

const signer = documentSigner();
const key = createPublicKey({ key: Buffer.from(signer.publicKey, 'base64'), format: 'der', type: 'spki' });
const outcomeOf = (parts: OtherParts) => {
  const outcome = signedContent(pkcs7Of('content', signer, 'content', parts), key);
  return outcome.kind === 'signed' ? `signed ${outcome.content.toString()}` : outcome.reason;
};

describe('signed content', () => {
  it('is accepted with attributes or without, and with either name of the algorithm', () => {
    expect(outcomeOf({})).toBe('signed content');
    expect(outcomeOf({ attributes: () => [] })).toBe('signed content');
    expect(outcomeOf({ signatureAlgorithm: OTHER.SHA_256_WITH_RSA })).toBe('signed content');
    expect(outcomeOf({ attributes: (type, digest) => [digest, type] })).toBe('signed content');
  });

  it.each([
    ['of another kind', { infoType: OTHER.ENCRYPTED_DATA }, 'no signed data'],
    ['of another content type', { contentType: OTHER.ENCRYPTED_DATA }, 'content is not plain data'],
    ['without a signer', { signers: () => [] }, 'number of signers is not one'],
    ['of two signers', { signers: (one) => [one, one] }, 'number of signers is not one'],
    ['with another digest', { digestAlgorithm: OTHER.SHA_384 }, 'digest is not SHA-256'],
    ['with another algorithm', { signatureAlgorithm: OTHER.ECDSA }, 'signature is not RSA'],
  ] as [string, OtherParts, string][])('%s is refused', (_, parts, reason) => {
    expect(outcomeOf(parts)).toBe(reason);
  });

  const digestAs = OTHER.digestAs;
  it.each([
    ['no digest', (type) => [type]],
    ['no type', (_, digest) => [digest]],
    ['two types', (type, digest) => [type, type, digest]],
    ['two digests', (type, digest) => [type, digest, digest]],
    ['the digest of another content', (type) => [type, OTHER.digestOf('other')]],
    ['a digest without a value', (type) => [type, digestAs()]],
    ['a digest of two values', (type) => [type, digestAs(OTHER.shortDigest(), OTHER.shortDigest())]],
    ['a digest that is too short', (type) => [type, digestAs(OTHER.shortDigest())]],
    ['a digest that is none', (type) => [type, digestAs(OTHER.NULL)]],
  ] as [string, NonNullable<OtherParts['attributes']>][])(
    'with attributes that have %s is refused',
    (_, attributes) => {
      expect(outcomeOf({ attributes })).toBe('signed attributes do not match the content');
    },
  );

  it('that is no PKCS #7, or is followed by something, is malformed', () => {
    const good = pkcs7Of('content', signer);
    for (const bytes of [Buffer.alloc(0), Buffer.from('x'), good.subarray(1), Buffer.concat([good, Buffer.from([0])])])
      expect(signedContent(bytes, key)).toEqual({ kind: 'refused', reason: 'malformed PKCS #7' });
  });

  it('is read where its bytes are part of larger ones', () => {
    const good = pkcs7Of('content', signer);
    const larger = Buffer.concat([Buffer.from('before'), good, Buffer.from('behind')]);
    expect(signedContent(larger.subarray(6, 6 + good.length), key).kind).toBe('signed');
  });

  it('of another key is refused', () => {
    expect(signedContent(pkcs7Of('content', documentSigner()), key)).toEqual({
      kind: 'refused',
      reason: 'wrong signature',
    });
  });
});
