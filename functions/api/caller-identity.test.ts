import { describe, expect, it } from 'vitest';
import { callerIdentityToken } from '../../cli/caller-identity.ts';
import { standInSts } from '../../test/support/sts.ts';
import { callerIdentityTokens } from './caller-identity.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const ROLE = 'arn:aws:iam::123456789012:role/Ops';
const credentials = { accessKeyId: 'AKIDADA', secretAccessKey: 'secret', sessionToken: 'a+session/token==' };

function signIn(over: { clusterId?: string; entries?: { arn: string; groups: string[] }[] } = {}) {
  const sts = standInSts({
    AKIDADA: {
      secretAccessKey: 'secret',
      arn: 'arn:aws:sts::123456789012:assumed-role/Ops/ada',
      account: '123456789012',
      userId: 'AROA1:ada',
    },
  });
  const scheme = callerIdentityTokens({
    clusterId: 'nodekeeper',
    entries: [{ arn: ROLE, groups: ['nodekeeper:admins'] }],
    ...over,
    fetch: sts.fetch,
  });
  return { sts, scheme };
}
const tokenFor = async (over: Partial<Parameters<typeof callerIdentityToken>[0]> = {}): Promise<string> =>
  (await callerIdentityToken({ credentials, clusterId: 'nodekeeper', region: 'eu-west-1', nowMs: NOW_MS, ...over }))
    .token;

describe('signing in with an AWS identity', () => {
  it('returns user and groups of the access entry for the identity from STS', async () => {
    const { scheme } = signIn();
    expect(await scheme.authenticate(await tokenFor(), NOW_MS)).toEqual({
      kind: 'authenticated',
      user: {
        username: 'arn:aws:sts::123456789012:assumed-role/Ops/ada',
        uid: 'nodekeeper:123456789012:AROA1',
        groups: ['nodekeeper:admins', 'system:authenticated'],
        extra: { arn: ['arn:aws:sts::123456789012:assumed-role/Ops/ada'] },
      },
    });
  });

  it('calls STS once for many requests, concurrent ones included, and again after five minutes', async () => {
    const { scheme, sts } = signIn();
    const token = await tokenFor();
    await Promise.all([1, 2, 3].map(() => scheme.authenticate(token, NOW_MS)));
    await scheme.authenticate(token, NOW_MS + 299_999);
    expect(sts.asked()).toBe(1);
    await scheme.authenticate(token, NOW_MS + 300_000);
    expect(sts.asked()).toBe(2);
  });

  it('keeps no verdict longer than the token is valid', async () => {
    const { scheme } = signIn();
    const token = await tokenFor({ nowMs: NOW_MS - 880_000 });
    expect((await scheme.authenticate(token, NOW_MS)).kind).toBe('authenticated');
    expect(await scheme.authenticate(token, NOW_MS + 20_000)).toEqual({ kind: 'refused', reason: 'token has expired' });
  });

  it('refuses a token that was signed for another cluster', async () => {
    const { scheme } = signIn();
    expect(await scheme.authenticate(await tokenFor({ clusterId: 'other' }), NOW_MS)).toEqual({
      kind: 'refused',
      reason: 'STS returned status 403',
    });
  });

  it('refuses a wrong secret, an unknown key and a changed URL', async () => {
    const { scheme } = signIn();
    const other = { ...credentials, secretAccessKey: 'guessed' };
    const unknown = { ...credentials, accessKeyId: 'AKIDEVE' };
    const url = Buffer.from((await tokenFor()).slice('k8s-aws-v1.'.length), 'base64url').toString();
    const later = `k8s-aws-v1.${Buffer.from(url.replace(/T12/, 'T13')).toString('base64url')}`;
    for (const token of [await tokenFor({ credentials: other }), await tokenFor({ credentials: unknown }), later]) {
      expect((await scheme.authenticate(token, NOW_MS + 3_600_000 * 0)).kind).toBe('refused');
    }
  });

  it('refuses an identity without an access entry', async () => {
    const { scheme } = signIn({ entries: [] });
    expect(await scheme.authenticate(await tokenFor(), NOW_MS)).toMatchObject({ kind: 'refused' });
  });

  it('returns 503, and caches nothing, while STS is unavailable', async () => {
    const { scheme, sts } = signIn();
    const token = await tokenFor();
    const failures = [
      () => Promise.reject(new TypeError('fetch failed')),
      () => Promise.resolve(new Response('busy', { status: 503 })),
      () => Promise.resolve(new Response('x'.repeat(100_000))),
    ];
    for (const failure of failures) {
      sts.fail(failure);
      await expect(scheme.authenticate(token, NOW_MS)).rejects.toMatchObject({ status: { code: 503 } });
    }
    sts.fail(undefined);
    expect((await scheme.authenticate(token, NOW_MS)).kind).toBe('authenticated');
  });

  it('refuses a response that is no caller identity', async () => {
    const { scheme, sts } = signIn();
    sts.fail(() => Promise.resolve(new Response('<html>')));
    expect((await scheme.authenticate(await tokenFor(), NOW_MS)).kind).toBe('refused');
  });

  it.each([
    ['429', () => Promise.resolve(new Response('slow down', { status: 429 }))],
    ['500', () => Promise.resolve(new Response('', { status: 500 }))],
  ])('asks to try again in two seconds when STS answers %s', async (_, failure) => {
    const { scheme, sts } = signIn();
    sts.fail(failure);
    await expect(scheme.authenticate(await tokenFor(), NOW_MS)).rejects.toMatchObject({
      status: { code: 503, details: { retryAfterSeconds: 2 } },
    });
  });

  it('caches a refusal for ten seconds', async () => {
    const { scheme, sts } = signIn({ entries: [] });
    const token = await tokenFor();
    for (const atMs of [0, 9_999, 10_000]) {
      const answer = await scheme.authenticate(token, NOW_MS + atMs);
      expect(answer).toMatchObject({ kind: 'refused', reason: expect.stringContaining('no access entry names arn:') });
    }
    expect(sts.asked()).toBe(2);
  });

  it('sends the request with the header of the cluster, follows no redirect and does not wait for ever', async () => {
    const sent: unknown[] = [];
    const scheme = callerIdentityTokens({
      ...{ clusterId: 'nodekeeper', entries: [] },
      fetch: async (url, init) => {
        sent.push([String(url), init]);
        return new Response('', { status: 403 });
      },
    });
    const token = await tokenFor();
    await scheme.authenticate(token, NOW_MS);
    expect(sent).toEqual([
      [
        Buffer.from(token.slice('k8s-aws-v1.'.length), 'base64url').toString(),
        {
          method: 'GET',
          headers: { 'x-k8s-aws-id': 'nodekeeper', accept: 'application/json' },
          redirect: 'error',
          signal: expect.any(AbortSignal),
        },
      ],
    ]);
  });

  it('sends sixteen requests at a time, and lets others wait for a free one', async () => {
    const { scheme, sts } = signIn();
    const answers: (() => void)[] = [];
    const [forbidden, held] = [() => new Response('', { status: 403 }), [] as Promise<unknown>[]];
    sts.fail(() => new Promise((resolve) => answers.push(() => resolve(forbidden()))));
    const tokens = await Promise.all(
      Array.from({ length: 17 }, (_, index) => tokenFor({ nowMs: NOW_MS - index * 1_000 })),
    );
    for (const token of tokens.slice(0, 16)) held.push(scheme.authenticate(token, NOW_MS));
    const last = () => scheme.authenticate(tokens[16]!, NOW_MS);
    await expect(last()).rejects.toMatchObject({ status: { code: 503 } });
    // A token that is being checked needs no other request.
    held.push(scheme.authenticate(tokens[0]!, NOW_MS));
    expect(answers).toHaveLength(16);
    answers[3]!();
    await held[3];
    const late = last();
    expect(answers).toHaveLength(17);
    for (const answer of answers) answer();
    await Promise.all([...held, late]);
  });

  it('reads 64 KiB of a response, and not more', async () => {
    const { scheme, sts } = signIn();
    const token = await tokenFor();
    sts.fail(() => Promise.resolve(new Response('x'.repeat(65_537))));
    await expect(scheme.authenticate(token, NOW_MS)).rejects.toMatchObject({ status: { code: 503 } });
    sts.fail(() => Promise.resolve(new Response('x'.repeat(65_536))));
    expect(await scheme.authenticate(token, NOW_MS)).toEqual({
      kind: 'refused',
      reason: 'STS returned no caller identity',
    });
  });

  it.each(['Arn', 'Account', 'UserId', ''])('refuses a response without %s', async (name) => {
    const { scheme, sts } = signIn();
    const { [name]: _, ...result } = { Arn: 'arn:aws:iam::123456789012:user/ada', Account: '1', UserId: 'A' } as Record<
      string,
      string
    >;
    const parsed = { GetCallerIdentityResponse: { GetCallerIdentityResult: name === '' ? null : result } };
    sts.fail(() => Promise.resolve(new Response(JSON.stringify(parsed))));
    const reason = 'STS returned no caller identity';
    expect(await scheme.authenticate(await tokenFor(), NOW_MS)).toEqual({ kind: 'refused', reason });
  });

  it('refuses what is no token of this kind, or is malformed, without a request', async () => {
    const { scheme, sts } = signIn();
    const outcomes = [await scheme.authenticate('abc', NOW_MS), await scheme.authenticate('k8s-aws-v1.*', NOW_MS)];
    expect(outcomes).toEqual([
      { kind: 'refused', reason: 'no caller identity token' },
      { kind: 'refused', reason: 'not base64url' },
    ]);
    expect(sts.asked()).toBe(0);
  });

  it('recognises only tokens of its kind', () => {
    const { scheme } = signIn();
    expect([scheme.recognises('k8s-aws-v1.x'), scheme.recognises('abc')]).toEqual([true, false]);
  });
});
