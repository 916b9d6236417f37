import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { documentSigner, pkcs7Of } from '../../../test/support/pkcs7.ts';
import { randomFrom } from '../../../test/support/seeded.ts';
import { instanceIdentities } from './instance-identities.ts';
import { signedContent } from './pkcs7.ts';

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../test/fixtures/instance-identity/${name}`, import.meta.url), 'utf8');
const fromOpenssl = (name: string): Buffer => Buffer.from(fixture(`${name}.p7.txt`), 'base64');
const opensslKey = new X509Certificate(fixture('cert.pem')).publicKey;

const NOW_MS = Date.UTC(2026, 0, 1, 0, 10);
const SCOPE = { accountId: '111122223333', region: 'eu-central-1', ageSecondsMax: 900 };
const DOCUMENT = JSON.parse(fixture('document.json')) as Record<string, unknown>;
const signer = documentSigner();
const scheme = instanceIdentities({ ...SCOPE, publicKey: signer.publicKey });
const tokenOf = (pkcs7: Buffer): string => `ec2.${pkcs7.toString('base64url')}`;
const outcomeOf = async (token: string, nowMs = NOW_MS) => {
  const answer = await scheme.authenticate(token, nowMs);
  return answer.kind === 'authenticated' ? answer.user.username : answer.kind === 'refused' ? answer.reason : '';
};
const outcomeWith = (more: object) => outcomeOf(tokenOf(pkcs7Of(JSON.stringify({ ...DOCUMENT, ...more }), signer)));

describe('PKCS #7', () => {
  it.each(['der', 'ber', 'plain'])('from OpenSSL (%s) returns its content', (name) => {
    const outcome = signedContent(fromOpenssl(name), opensslKey);
    expect(outcome.kind === 'signed' ? outcome.content.toString() : outcome.reason).toBe(fixture('document.json'));
  });

  it.each([
    ['sha1', 'digest is not SHA-256'],
    ['detached', 'malformed PKCS #7'],
  ])('of an unsupported kind (%s) is refused', (name, reason) => {
    expect(signedContent(fromOpenssl(name), opensslKey)).toEqual({ kind: 'refused', reason });
  });

  it('with the signature of another key is refused, whatever certificate it contains', () => {
    const { publicKey } = new X509Certificate(signer.certificate);
    for (const name of ['der', 'ber', 'plain']) {
      expect(signedContent(fromOpenssl(name), publicKey)).toEqual({ kind: 'refused', reason: 'wrong signature' });
    }
  });

  it('with one changed octet returns no other content', { timeout: 120_000 }, () => {
    const good = fromOpenssl('ber');
    const content = fixture('document.json');
    for (let at = 0; at < good.length; at += 1) {
      const changed = Buffer.from(good);
      changed[at] = changed[at]! ^ 0x01;
      const outcome = signedContent(changed, opensslKey);
      if (outcome.kind === 'signed') expect(outcome.content.toString(), `octet ${at}`).toBe(content);
    }
  });

  it('that is truncated or random is refused in bounded time', () => {
    const good = fromOpenssl('ber');
    for (let length = 0; length < good.length; length += 7) {
      expect(signedContent(good.subarray(0, length), opensslKey).kind).toBe('refused');
    }
    const random = randomFrom(7);
    for (let round = 0; round < 500; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 64 }, () => Math.floor(random() * 256)));
      expect(signedContent(Buffer.concat([Buffer.from([0x30, 0x80]), bytes]), opensslKey).kind).toBe('refused');
    }
    expect(signedContent(Buffer.alloc(6_000, Buffer.from([0x30, 0x80])), opensslKey).kind).toBe('refused');
  });
});

describe('an instance identity document', () => {
  it('authenticates its instance for enrolment', async () => {
    const token = tokenOf(pkcs7Of(JSON.stringify(DOCUMENT), signer));
    expect(scheme.recognises(token)).toBe(true);
    expect(await scheme.authenticate(token, NOW_MS)).toEqual({
      kind: 'authenticated',
      user: {
        username: 'system:instance:i-0123456789abcdef0',
        groups: ['system:bootstrappers', 'system:authenticated'],
      },
    });
  });

  it.each([
    [{ accountId: '999988887777' }, 'of another account'],
    [{ region: 'eu-west-1' }, 'of another region'],
    [{ instanceId: 'i-1/../x' }, 'names no instance'],
    [{ instanceId: undefined }, 'names no instance'],
    [{ pendingTime: 'soon' }, 'says no launch time'],
    [{ pendingTime: '2025-12-31T23:54:59Z' }, 'launched too long ago'],
    [{ pendingTime: '2026-01-01T00:11:01Z' }, 'launched in the future'],
  ])('with %j is refused', async (more, reason) => {
    expect(await outcomeWith(more)).toBe(`instance identity: ${reason}`);
  });

  it('is valid for exactly fifteen minutes', async () => {
    const token = tokenOf(pkcs7Of(JSON.stringify(DOCUMENT), signer));
    expect(await outcomeOf(token, Date.UTC(2026, 0, 1, 0, 15))).toBe('system:instance:i-0123456789abcdef0');
    expect(await outcomeOf(token, Date.UTC(2026, 0, 1, 0, 15) + 1)).toBe('instance identity: launched too long ago');
  });

  it('is refused if it is forged, replaced, too long or no document', async () => {
    const text = JSON.stringify(DOCUMENT);
    const stranger = documentSigner();
    expect(await outcomeOf(tokenOf(pkcs7Of(text, stranger)))).toBe('instance identity: wrong signature');
    const other = text.replace('i-0123456789abcdef0', 'i-0fedcba9876543210');
    expect(await outcomeOf(tokenOf(pkcs7Of(text, signer, other)))).toBe(
      'instance identity: signed attributes do not match the content',
    );
    expect(await outcomeOf(tokenOf(pkcs7Of('[]', signer)))).toBe('instance identity: no JSON document');
    expect(await outcomeOf(`ec2.${'A'.repeat(9_000)}`)).toBe('instance identity: malformed');
    expect(await outcomeOf('ec2.')).toBe('instance identity: malformed');
    const good = tokenOf(pkcs7Of(text, signer));
    for (const malformed of [`${good}=`, good.replace('ec2.', 'ec2.='), good.replace('ec2.', 'ec2.+')])
      expect(await outcomeOf(malformed)).toBe('instance identity: malformed');
    const filled = (length: number) => good.padEnd(length, 'A');
    expect(await outcomeOf(filled(8_192))).toBe('instance identity: malformed PKCS #7');
    expect(await outcomeOf(filled(8_193))).toBe('instance identity: malformed');
    expect([scheme.recognises(good), scheme.recognises(`x${good}`)]).toEqual([true, false]);
  });

  it('is accepted from a minute before its launch', async () => {
    const launch = { pendingTime: '2026-01-01T00:11:00Z' };
    expect(await outcomeWith(launch)).toBe('system:instance:i-0123456789abcdef0');
    expect(await outcomeWith({ pendingTime: 7 })).toBe('instance identity: says no launch time');
    expect(await outcomeWith({ instanceId: 7 })).toBe('instance identity: names no instance');
  });

  it('requires an RSA key of at least 2048 bits', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const ec = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    expect(() => instanceIdentities({ ...SCOPE, publicKey: ec })).toThrow('2048 bits');
    expect(() => instanceIdentities({ ...SCOPE, publicKey: documentSigner(1_024).publicKey })).toThrow('2048 bits');
    expect(() => instanceIdentities({ ...SCOPE, publicKey: 'none' })).toThrow();
  });
});
