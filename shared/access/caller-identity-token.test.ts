import { describe, expect, it } from 'vitest';
import { CALLER_IDENTITY_CHARACTERS_MAX, readCallerIdentityToken } from './caller-identity-token.ts';

const SIGNED_MS = Date.UTC(2026, 0, 1, 12, 0, 0);
const PARAMETERS: Readonly<Record<string, string>> = {
  Action: 'GetCallerIdentity',
  Version: '2011-06-15',
  'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
  'X-Amz-Credential': 'AKIDEXAMPLE/20260101/eu-west-1/sts/aws4_request',
  'X-Amz-Date': '20260101T120000Z',
  'X-Amz-Expires': '60',
  'X-Amz-SignedHeaders': 'host;x-k8s-aws-id',
  'X-Amz-Signature': 'ab12',
};
const encoded = (url: string): string => `k8s-aws-v1.${Buffer.from(url).toString('base64url')}`;
const urlWith = (over: Readonly<Record<string, string>> = {}, base = 'https://sts.eu-west-1.amazonaws.com/'): string =>
  `${base}?${new URLSearchParams({ ...PARAMETERS, ...over })}`;
const read = (url: string, nowMs = SIGNED_MS) => readCallerIdentityToken(encoded(url), nowMs);

describe('readCallerIdentityToken', () => {
  it.each([
    'https://sts.amazonaws.com/',
    'https://sts.eu-west-1.amazonaws.com/',
    'https://sts.us-gov-west-1.amazonaws.com/',
    'https://sts-fips.us-east-1.amazonaws.com/',
    'https://sts.cn-north-1.amazonaws.com.cn/',
    'https://sts.eusc-de-east-1.amazonaws.eu/',
  ])('accepts a request signed for %s', (base) => {
    const url = urlWith({}, base);
    expect(read(url)).toEqual({ kind: 'askable', url, host: new URL(base).host, goodUntilMs: SIGNED_MS + 900_000 });
  });

  it.each([
    ['another service', 'https://s3.eu-west-1.amazonaws.com/'],
    ['a name that only ends like STS', 'https://evilsts.amazonaws.com/'],
    ['a subdomain in front', 'https://a.sts.amazonaws.com/'],
    ['a suffix behind', 'https://sts.amazonaws.com.evil.example/'],
    ['the metadata service', 'https://169.254.169.254/'],
    ['the domain of another partition', 'https://sts.eu-west-1.amazonaws.com.cn/'],
    ['a domain that does not exist', 'https://sts.eusc-de-east-1.amazonaws.example/'],
    ['a suffix behind a region', 'https://sts.eu-west-1.amazonaws.com.evil.example/'],
    ['a region of two labels', 'https://sts.evil.example-1.amazonaws.com/'],
    ['plain http', 'http://sts.amazonaws.com/'],
    ['a port', 'https://sts.amazonaws.com:8443/'],
    ['credentials', 'https://me:you@sts.amazonaws.com/'],
    ['a path', 'https://sts.amazonaws.com/x/'],
    ['a backslash', 'https://sts.amazonaws.com\\@evil.example/'],
    ['upper case', 'https://STS.amazonaws.com/'],
  ])('refuses %s', (_, base) => {
    expect(read(`${base}?${new URLSearchParams(PARAMETERS)}`)).toMatchObject({ kind: 'refused' });
  });

  it.each([
    ['another action', { Action: 'AssumeRole' }],
    ['another version', { Version: '2010-01-01' }],
    ['a date with something before it', { 'X-Amz-Date': 'x20260101T120000Z' }],
    ['a date with something behind it', { 'X-Amz-Date': '20260101T120000Zx' }],
    ['a date of short parts', { 'X-Amz-Date': '2026011T120000Z' }],
    ['an expiry with something behind it', { 'X-Amz-Expires': '60s' }],
    ['an expiry with something before it', { 'X-Amz-Expires': 's60' }],
    ['an expiry above the longest', { 'X-Amz-Expires': '901' }],
    ['no expiry', { 'X-Amz-Expires': '' }],
    ['a header that only contains the cluster’s', { 'X-Amz-SignedHeaders': 'host;x-k8s-aws-id-2' }],
    ['another algorithm', { 'X-Amz-Algorithm': 'AWS4-ECDSA-P256-SHA256' }],
    ['a cluster that is not signed', { 'X-Amz-SignedHeaders': 'host' }],
    ['a host that is not signed', { 'X-Amz-SignedHeaders': 'x-k8s-aws-id' }],
    ['an expiry of an hour', { 'X-Amz-Expires': '3600' }],
    ['an expiry that is no number', { 'X-Amz-Expires': '-1' }],
    ['a date that is none', { 'X-Amz-Date': 'yesterday' }],
    ['a month that is none', { 'X-Amz-Date': '20261301T120000Z' }],
    ['a parameter more', { Endpoint: 'https://evil.example' }],
  ])('refuses %s', (_, over) => {
    expect(read(urlWith(over))).toMatchObject({ kind: 'refused' });
  });

  it('accepts an expiry of 1 to 900 seconds, a session token, and names in any case', () => {
    for (const expires of ['1', '99', '900']) expect(read(urlWith({ 'X-Amz-Expires': expires })).kind).toBe('askable');
    expect(read(urlWith({ 'X-Amz-Security-Token': 'a+b/c==' })).kind).toBe('askable');
    expect(read(urlWith({ 'X-Amz-SignedHeaders': 'Host;X-K8s-Aws-Id' })).kind).toBe('askable');
    const lower = Object.fromEntries(Object.entries(PARAMETERS).map(([name, value]) => [name.toLowerCase(), value]));
    expect(read(`https://sts.amazonaws.com/?${new URLSearchParams(lower)}`).kind).toBe('askable');
  });

  it.each(Object.keys(PARAMETERS).filter((name) => !['X-Amz-Credential', 'X-Amz-Signature'].includes(name)))(
    'refuses a request without %s; STS checks the signature and the key',
    (name) => {
      const { [name]: _, ...rest } = PARAMETERS;
      expect(read(`https://sts.amazonaws.com/?${new URLSearchParams(rest)}`).kind).toBe('refused');
    },
  );

  it('refuses a duplicate parameter, in whatever case', () => {
    expect(read(`${urlWith()}&action=GetCallerIdentity`)).toMatchObject({ reason: 'repeated query parameter' });
  });

  it('holds for 15 minutes, and tolerates a clock five minutes ahead', () => {
    expect(read(urlWith(), SIGNED_MS + 899_999).kind).toBe('askable');
    expect(read(urlWith(), SIGNED_MS + 900_000)).toMatchObject({ reason: 'token has expired' });
    expect(read(urlWith(), SIGNED_MS - 300_000).kind).toBe('askable');
    expect(read(urlWith(), SIGNED_MS - 300_001)).toMatchObject({ reason: 'token was signed in the future' });
  });

  it('leaves tokens of another kind alone, and reads none that is too long or no base64url', () => {
    expect(readCallerIdentityToken('abc.def', 0)).toEqual({ kind: 'other' });
    expect(readCallerIdentityToken(`k8s-aws-v1.${'A'.repeat(CALLER_IDENTITY_CHARACTERS_MAX)}`, 0)).toMatchObject({
      reason: 'token too long',
    });
    expect(readCallerIdentityToken('k8s-aws-v1.a+b/', 0)).toMatchObject({ reason: 'not base64url' });
    const longest = 'k8s-aws-v1.'.padEnd(CALLER_IDENTITY_CHARACTERS_MAX, 'A');
    expect(readCallerIdentityToken(longest, 0)).not.toMatchObject({ reason: 'token too long' });
    for (const text of ['', '=', 'YQ==', '/YWJj', 'YWJj/', 'A']) {
      expect(readCallerIdentityToken(`k8s-aws-v1.${text}`, 0)).toEqual({ kind: 'refused', reason: 'not base64url' });
    }
    expect(readCallerIdentityToken(`x${encoded(urlWith())}`, SIGNED_MS)).toEqual({ kind: 'other' });
  });

  it('reads the whole text as one URL, and a base64url of all letters', () => {
    const reason = 'not an https URL of a host, the root path and a query';
    for (const text of [` ${urlWith()}`, `${urlWith()}\n`, `${urlWith()} x`, 'https://sts.amazonaws.com/', 'x'])
      expect(read(text), text).toEqual({ kind: 'refused', reason });
    // These characters need both letters that base64url has in place of + and /.
    const url = urlWith().replace('ab12', '>>>>~~~~????');
    expect(Buffer.from(url).toString('base64url')).toMatch(/-.*_|_.*-/);
    expect(read(url)).toMatchObject({ kind: 'askable', url });
  });
});
