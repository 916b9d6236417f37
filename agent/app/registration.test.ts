import { describe, expect, it } from 'vitest';
import { answered, refused, scriptedApi, silentLog, virtualTime } from '../../test/support/agent-api.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { createRegistration } from './registration.ts';

const node = { kind: 'Node', metadata: { name: 'edge-7', uid: 'u1' } };

function world(answer: () => KubeAnswer, { registerNode = true, sleepsMax = 20 } = {}) {
  const stopper = new AbortController();
  const api = scriptedApi(answer);
  const time = virtualTime(0, (waits) => {
    if (waits.length >= sleepsMax) stopper.abort();
  });
  const registration = createRegistration(
    { nodeName: 'edge-7', registerNode },
    {
      api,
      time,
      fraction: () => 0,
      log: silentLog,
      stop: stopper.signal,
      timeoutMs: 10_000,
      buildNode: async () => node,
    },
  );
  return { api, time, registration };
}

describe('registration', () => {
  it('registers once per process, however often it is requested', async () => {
    const { api, registration } = world(() => answered(201, node));
    expect(await Promise.all([registration.ensure(), registration.ensure()])).toEqual([true, true]);
    await registration.ensure();
    expect(api.requests).toHaveLength(1);
  });

  it('registers a deleted Node again, and notifies each time', async () => {
    const { api, registration } = world(() => answered(201, node));
    const told: (string | undefined)[] = [];
    registration.onRegistered(({ metadata }) => told.push(metadata.uid));
    await registration.ensure();
    expect(await Promise.all([registration.again(), registration.again()])).toEqual([true, true]);
    expect(api.requests).toHaveLength(2);
    expect(told).toEqual(['u1', 'u1']);
  });

  it('sends nothing where the Node is registered by others', async () => {
    const { api, registration } = world(() => answered(201, node), { registerNode: false });
    expect(await registration.ensure()).toBe(true);
    expect(await registration.again()).toBe(false);
    expect(api.requests).toEqual([]);
  });

  it('waits as long as a Retry-After asks', async () => {
    let requests = 0;
    const { time, registration } = world(() => {
      requests += 1;
      return requests === 1 ? { kind: 'answered', status: 429, body: {}, retryAfterMs: 4_000 } : answered(201, node);
    });
    await registration.ensure();
    expect(time.waits).toEqual([100, 4_000]);
  });

  it.each([
    ['a page of a captive portal', '<html>log in</html>'],
    ['an object without a kind', { metadata: node.metadata }],
    ['another Node', { kind: 'Node', metadata: { name: 'edge-8', uid: 'u2' } }],
    ['a Node without a uid', { kind: 'Node', metadata: { name: 'edge-7' } }],
  ])('does not accept %s as the Node', async (_what, body) => {
    let requests = 0;
    const { api, registration } = world(() => {
      requests += 1;
      return requests === 1 ? answered(200, body) : answered(201, node);
    });
    expect(await registration.ensure()).toBe(true);
    expect(api.requests).toHaveLength(2);
  });

  it('resolves without a Node when it is stopped', async () => {
    const { registration, api } = world(() => refused(500, 'InternalError'), { sleepsMax: 3 });
    expect(await registration.ensure()).toBe(false);
    expect(api.requests).toHaveLength(2);
  });
});
