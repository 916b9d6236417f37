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
    expect(readCallerIdentityToken('k8s-aws-v1.', 0)).toMatchObject({ kind: 'refused' });
  });
});
