import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { answered, refused, scriptedApi } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { KubeAnswer } from '../../ports/kube-api.ts';
import { AccountTokens } from './account-tokens.ts';

const START_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const request = { audience: '', lifetimeSeconds: 3_600 };
const sourceOf = (more: object) => ({ serviceAccountToken: { path: 'token', expirationSeconds: 3_600, ...more } });
const podWith = (...sources: object[]): KubePod => ({
  metadata: { name: 'p', namespace: 'n s', uid: 'u1' },
  spec: { serviceAccountName: 's a', volumes: [{ name: 'v', projected: { sources } }] },
});

function world(answer: (path: string, count: number) => KubeAnswer) {
  const time = new SteppedTime(START_MS);
  let count = 0;
  const api = scriptedApi(({ path }) => {
    count += 1;
    return answer(path, count);
  });
  return { time, api, tokens: new AccountTokens({ api, time }) };
}
const issued = (token: string, expiresAtMs?: number): KubeAnswer => {
  const expiry = expiresAtMs === undefined ? {} : { expirationTimestamp: formatTime(expiresAtMs) };
  return answered(201, { metadata: {}, status: { token, ...expiry } });
};

describe('the tokens of a pod', () => {
  it('are requested for its account, bound to the pod', async () => {
    const { api, tokens } = world((_path, count) => issued(`t${count}`));
    expect(tokens.get(request)).toEqual({ kind: 'failed', message: 'failed to fetch token: not requested yet' });
    expect(tokens.nextRefreshMs()).toBe(Number.POSITIVE_INFINITY);
    await tokens.renew(podWith(sourceOf({}), sourceOf({ audience: 'vault' })));
    expect(api.requests[0]).toEqual({
      method: 'POST',
      path: '/api/v1/namespaces/n%20s/serviceaccounts/s%20a/token',
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: [],
          expirationSeconds: 3_600,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' },
        },
      },
    });
    expect(api.requests[1]?.body).toMatchObject({ spec: { audiences: ['vault'] } });
    expect([tokens.get(request), tokens.get({ ...request, audience: 'vault' })]).toEqual([
      { kind: 'token', token: 't1' },
      { kind: 'token', token: 't2' },
    ]);
  });

  it('are none of a pod without such volumes', async () => {
    const { api, tokens } = world(() => issued('t'));
    await tokens.renew({ metadata: { name: 'p', uid: 'u' }, spec: {} });
    expect(api.requests).toEqual([]);
  });

  it.each([
    { of: 'the time that the API states', statedMs: HOUR_MS / 2, lifeMs: HOUR_MS / 2 },
    { of: 'the requested time, if the API states more', statedMs: 2 * HOUR_MS, lifeMs: HOUR_MS },
    { of: 'the requested time, if the clock is wrong', statedMs: -HOUR_MS, lifeMs: HOUR_MS },
    { of: 'the requested time, if the API states none', statedMs: undefined, lifeMs: HOUR_MS },
  ])('are valid for $of, and due after four fifths', async ({ statedMs, lifeMs }) => {
    const { time, tokens, api } = world((_path, count) =>
      issued(`t${count}`, statedMs === undefined ? undefined : START_MS + 5_000 + statedMs),
    );
    await time.pass(5_000);
    await tokens.renew(podWith(sourceOf({})));
    expect(tokens.nextRefreshMs()).toBe(5_000 + 0.8 * lifeMs);
    await time.pass(0.8 * lifeMs - 1);
    await tokens.renew(podWith(sourceOf({})));
    expect(api.requests).toHaveLength(1);
    await time.pass(0.2 * lifeMs);
    expect(tokens.get(request)).toEqual({ kind: 'token', token: 't1' });
    await time.pass(1);
    expect(tokens.get(request)).toEqual({ kind: 'failed', message: 'failed to fetch token: not requested yet' });
    await tokens.renew(podWith(sourceOf({})));
    expect(api.requests).toHaveLength(2);
  });

  it('are replaced when they are due', async () => {
    const { time, tokens } = world((_path, count) => issued(`t${count}`));
    await tokens.renew(podWith(sourceOf({})));
    await time.pass(0.8 * HOUR_MS);
    await tokens.renew(podWith(sourceOf({})));
    expect(tokens.get(request)).toEqual({ kind: 'token', token: 't2' });
  });

  it.each([
    [refused(403, 'Forbidden'), 'failed to fetch token: 403'],
    [answered(200, { metadata: {}, status: { token: '' } }), 'failed to fetch token: 200'],
    [answered(200, { metadata: {} }), 'failed to fetch token: 200'],
    [answered(200, 'a page'), 'failed to fetch token: 200'],
    [answered(404, { metadata: {}, status: { token: 'x' } }), 'failed to fetch token: 404'],
  ])('fail with the answer %j', async (answer, message) => {
    const { tokens, api } = world(() => answer);
    await tokens.renew(podWith(sourceOf({})));
    expect(tokens.get(request)).toEqual({ kind: 'failed', message });
    await tokens.renew(podWith(sourceOf({})));
    expect(api.requests).toHaveLength(2);
  });

  it('expire while the machine is suspended, too', async () => {
    const { time, api, tokens } = world((_path, count) => (count === 1 ? issued('t1') : refused(503, 'no')));
    const pod = podWith(sourceOf({}));
    await tokens.renew(pod);
    expect(tokens.nextRefreshMs() - time.monotonicMs()).toBe(0.8 * HOUR_MS);
    time.suspend(0.9 * HOUR_MS);
    expect(tokens.nextRefreshMs()).toBeLessThan(time.monotonicMs());
    await tokens.renew(pod);
    expect([api.requests.length, tokens.get(request).kind]).toEqual([2, 'token']);
    time.suspend(0.2 * HOUR_MS);
    expect(tokens.get(request).kind).toBe('failed');
  });

  it('stay while they are valid and cannot be replaced, with a try each minute', async () => {
    const { time, tokens, api } = world((_path, count) => (count === 2 ? refused(503, 'x') : issued(`t${count}`)));
    await tokens.renew(podWith(sourceOf({})));
    await time.pass(0.8 * HOUR_MS);
    await tokens.renew(podWith(sourceOf({})));
    expect(tokens.get(request)).toEqual({ kind: 'token', token: 't1' });
    expect(tokens.nextRefreshMs()).toBe(0.8 * HOUR_MS + 60_000);
    await time.pass(59_999);
    await tokens.renew(podWith(sourceOf({})));
    expect(api.requests).toHaveLength(2);
    await time.pass(1);
    await tokens.renew(podWith(sourceOf({})));
    expect(tokens.get(request)).toEqual({ kind: 'token', token: 't3' });
    await time.pass(HOUR_MS);
    // An earlier failure is not the reason any more.
    expect(tokens.get(request)).toEqual({ kind: 'failed', message: 'failed to fetch token: not requested yet' });
  });
});
