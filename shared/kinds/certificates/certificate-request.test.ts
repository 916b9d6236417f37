// The certificate library's own dependency needs it, and before it.
import 'reflect-metadata';
import { BasicConstraintsExtension } from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSignedByItsKey } from '../../../functions/api/access/request-signature.ts';
import { makeRequest, P256, type RequestToMake } from '../../../test/support/certificate-request.ts';
import { REQUEST_BYTES_MAX, readCertificateRequest } from './certificate-request.ts';

const rsa = (modulusLength: number, exponent = [1, 0, 1]) => ({
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength,
  publicExponent: new Uint8Array(exponent),
});

async function readOf(wanted: RequestToMake) {
  const reading = readCertificateRequest((await makeRequest(wanted)).request);
  if (reading.kind !== 'request') throw new Error(JSON.stringify(reading));
  return reading.request;
}
const whyOf = (text: string): string => {
  const reading = readCertificateRequest(text);
  return reading.kind === 'malformed' ? reading.why : reading.kind;
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('a certificate request', () => {
  it('names its user, groups and alternative names', async () => {
    const alternativeNames = [
      { type: 'dns', value: 'n1.example' },
      { type: 'ip', value: '192.0.2.7' },
      { type: 'ip', value: '2001:db8:0:0:0:0:0:1' },
      { type: 'email', value: 'a@b.c' },
      { type: 'url', value: 'spiffe://a/b' },
    ] as const;
    const extensions = [new BasicConstraintsExtension(true, 1, true)];
    const made = { commonName: 'Ada Løvelace', organizations: ['dev', 'ops'], alternativeNames: [...alternativeNames] };
    expect(await readOf({ ...made, extensions })).toMatchObject({ ...made, keyType: 'EC P-256', hash: 'sha256' });
    expect(await readOf({ subject: [] })).toMatchObject({ commonName: '', organizations: [], alternativeNames: [] });
  });

  it.each([
    ['EC P-384', { ...P256, namedCurve: 'P-384', hash: 'SHA-384' }],
    ['EC P-521', { ...P256, namedCurve: 'P-521', hash: 'SHA-512' }],
    ['Ed25519', { name: 'Ed25519' }],
    ['RSA', rsa(2_048)],
  ])('with a key of %s is verified', async (keyType, algorithm) => {
    const request = await readOf({ commonName: 'ada', algorithm });
    expect(request.keyType).toBe(keyType);
    expect(isSignedByItsKey(request)).toBe(true);
    const other = await readOf({ commonName: 'eve', algorithm });
    expect(isSignedByItsKey({ ...request, publicKey: other.publicKey })).toBe(false);
    expect(isSignedByItsKey({ ...request, signed: other.signed })).toBe(false);
  });

  it.each([
    ['a weak key', rsa(1_024), 'an RSA key must have 2048 to 8192 bits'],
    ['a long exponent', rsa(2_048, [255, 255, 255, 251]), 'the exponent of the RSA key is too large'],
    ['SHA-1', { ...rsa(2_048), hash: 'SHA-1' }, 'the signature must use SHA-256, SHA-384, SHA-512 or Ed25519'],
  ])('with %s is refused', async (_, algorithm, why) => {
    expect(whyOf((await makeRequest({ commonName: 'a', algorithm })).request)).toBe(
      `malformed certificate request: ${why}`,
    );
  });

  it('with an RSA key that is slow to verify is refused', () => {
    const value = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
      const content = Buffer.concat(parts);
      return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
    };
    const short = (text: string): Buffer => Buffer.from(text, 'hex');
    const key = value(0x30, value(0x02, Buffer.of(0), Buffer.alloc(1_025, 0xff)), short('0203010001'));
    const publicKey = value(0x30, short('300d06092a864886f70d0101010500'), value(0x03, Buffer.of(0), key));
    const info = value(0x30, short('020100'), short('3000'), publicKey, short('a000'));
    const signature = [short('300d06092a864886f70d01010b0500'), value(0x03, Buffer.alloc(1_026))];
    const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${value(0x30, info, ...signature).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    expect(whyOf(base64(pem))).toContain('an RSA key must have 2048 to 8192 bits');
  });

  it.each([
    ['two common names', [{ CN: ['ada'] }, { CN: ['system:node:n1'] }], 'the subject has several common names'],
    ['a line end in a name', [{ CN: ['ada\nO=system:masters'] }], 'a name has control characters'],
    ['a zero byte in a name', [{ CN: ['ada\u0000'] }], 'a name has control characters'],
  ])('with %s is refused', async (_, subject, why) => {
    expect(whyOf((await makeRequest({ subject })).request)).toBe(`malformed certificate request: ${why}`);
  });

  it('is one PEM block, of its type, which text may precede', async () => {
    const { request } = await makeRequest({ commonName: 'ada' });
    const pem = Buffer.from(request, 'base64').toString();
    expect(whyOf(base64(`Certificate Request:\n  Data\n${pem}`))).toBe('request');
    const other = 'PEM block type must be CERTIFICATE REQUEST';
    expect(whyOf(base64(pem.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')))).toBe(other);
    expect(whyOf(base64(pem.replace('-----END', '')))).toBe(other);
    expect(whyOf('')).toBe(other);
  });

  it('of a megabyte is refused before it is decoded', () => {
    expect(whyOf('A'.repeat(1_000_000))).toBe('tooLong');
    expect(whyOf(base64('x'.repeat(REQUEST_BYTES_MAX)))).not.toBe('tooLong');
  });

  it('with any byte changed is malformed, or not signed by its key, and never an exception', async () => {
    const pem = Buffer.from((await makeRequest({ commonName: 'ada', organizations: ['dev'] })).request, 'base64');
    const der = Buffer.from(pem.toString().replace(/-----[^-]+-----/g, ''), 'base64');
    const inPem = (bytes: Buffer) =>
      base64(`-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`);
    expect(whyOf(inPem(der))).toBe('request');
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(der);
        changed[at]! ^= flip;
        const reading = readCertificateRequest(inPem(changed));
        return reading.kind === 'malformed' || (reading.kind === 'request' && !isSignedByItsKey(reading.request));
      }),
      { numRuns: 2_000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => whyOf(inPem(Buffer.from(bytes))) !== 'request'),
    );
  });
});
