import { expect, it } from 'vitest';
import type { KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { listPods } from './pod-list.ts';

const pod = (name: string, more: object = {}) => ({
  metadata: { name, uid: `uid of ${name}` },
  spec: { nodeName: 'n1', ...more },
});

function answers(...pages: readonly object[]) {
  const requests: KubeRequest[] = [];
  const send: KubeApi['send'] = async (request) => {
    requests.push(request);
    return { kind: 'answered', status: 200, body: pages[Math.min(requests.length, pages.length) - 1] };
  };
  return { api: { send } as KubeApi, requests };
}

it('lists all pages, and only pods of the node that have a uid', async () => {
  const { api, requests } = answers(
    { metadata: { continue: 'a/b' }, items: [pod('a'), pod('elsewhere', { nodeName: 'n2' })] },
    { metadata: {}, items: [pod('b'), { metadata: { name: 'no uid' }, spec: { nodeName: 'n1' } }] },
  );
  const { signal } = new AbortController();
  expect(await listPods(api, 'n1', signal)).toMatchObject({
    kind: 'listed',
    pods: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
  });
  expect(requests.map(({ path }) => path)).toEqual([
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=250',
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=250&continue=a%2Fb',
  ]);
  expect(requests.every((each) => each.signal === signal)).toBe(true);
});

it('fails after forty pages, because an incomplete list would look complete', async () => {
  const { api, requests } = answers({ metadata: { continue: 'more' }, items: [pod('a')] });
  expect(await listPods(api, 'n1')).toEqual({ kind: 'failed', why: 'more than 10000 pods' });
  expect(requests).toHaveLength(40);
});

it('fails on an answer that is not a list', async () => {
  expect(await listPods(answers({}).api, 'n1')).toMatchObject({ kind: 'failed', why: 'the answer is not a list' });
});
