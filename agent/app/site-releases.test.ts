import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { KubeRequest } from '../ports/kube-api.ts';
import { finalPodDeletion, podStatusReport } from '../rules/pod-requests.ts';
import { withSiteReleases } from './site-releases.ts';

const podWith = (uid: string): KubePod => ({ metadata: { namespace: 'plant', name: 'press', uid } });
const end = (uid: string): readonly KubeRequest[] => [
  finalPodDeletion(podWith(uid)),
  podStatusReport(podWith(uid), { phase: 'Failed' }),
  podStatusReport(podWith(uid), { phase: 'Succeeded' }),
];

function sent(released: boolean) {
  const requests: KubeRequest[] = [];
  const asked: string[] = [];
  let reconnects = 0;
  const api = withSiteReleases({
    api: {
      async send(request) {
        requests.push(request);
        return { kind: 'answered', status: 200, body: undefined };
      },
      reconnect() {
        reconnects += 1;
      },
    },
    isOfSite: (uid) => uid === 'site' || uid === 'copy',
    isUnknown: (uid) => uid === 'copy',
    async release(uid) {
      asked.push(uid);
      return released;
    },
  });
  return { api, requests, asked, reconnects: () => reconnects };
}

describe('the end of a pod of a site', () => {
  it.each(end('site'))('$method $path is sent after its release alone', async (request) => {
    const refused = sent(false);
    expect((await refused.api.send(request)).kind).toBe('failed');
    expect([refused.asked, refused.requests]).toEqual([['site'], []]);
    const released = sent(true);
    expect((await released.api.send(request)).kind).toBe('answered');
    expect(released.requests).toEqual([request]);
  });

  it('of a copy that the cluster does not know is released, and not sent', async () => {
    const { api, requests, asked } = sent(true);
    const answer = await api.send(podStatusReport(podWith('copy'), { phase: 'Failed' }));
    expect([answer.kind, asked, requests]).toEqual(['answered', ['copy'], []]);
  });

  it('of another pod, and every other request, needs no release', async () => {
    const { api, requests, asked } = sent(false);
    const others = [...end('other'), podStatusReport(podWith('site'), { phase: 'Running' })];
    for (const request of others) await api.send(request);
    await api.send({ method: 'GET', path: '/api/v1/pods' });
    expect([asked, requests.length]).toEqual([[], 5]);
  });

  it('needs the connection of the API itself', () => {
    const { api, reconnects } = sent(true);
    api.reconnect();
    expect(reconnects()).toBe(1);
  });
});

it('another request with the status of a terminated pod needs no release', async () => {
  const { api, asked, requests } = sent(false);
  await api.send({ method: 'POST', path: '/other', body: { metadata: { uid: 'site' }, status: { phase: 'Failed' } } });
  expect([asked, requests.length]).toEqual([[], 1]);
});
